"""SageMaker as the service of `trainstack run`."""

from infra.jobs.aws import plan
from infra.jobs.aws.service import SageMakerService


class SageMakerRuns(SageMakerService):
    """Training jobs of a stack, and their part of a run's plan. See `service_part.RunService`."""

    part = staticmethod(plan.part)
