"""Ways to buy machines that only AWS has."""

from typing import Literal

from infra.stackspec.model import Model


class TrainingPlan(Model):
    """Jobs run on machines that a training plan of SageMaker reserves for a while, paid in advance."""

    kind: Literal["training_plan"]
    """`training_plan`"""

    arn: str
    """Of the plan: `arn:aws:sagemaker:<region>:<account>:training-plan/<name>`. It is bought with
    `aws sagemaker create-training-plan`, not by the stack."""
