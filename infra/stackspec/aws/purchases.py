"""Ways to buy machines that only AWS has."""

from typing import Literal

from infra.stackspec.model import Model


class TrainingPlan(Model):
    """Jobs run on machines of a SageMaker training plan: reserved for a period, paid in advance."""

    kind: Literal["training_plan"]
    """`training_plan`"""

    arn: str
    """ARN of the plan: `arn:aws:sagemaker:<region>:<account>:training-plan/<name>`. Buy it with
    `aws sagemaker create-training-plan`; the stack does not."""
