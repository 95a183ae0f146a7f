"""Vertex AI as the service of `trainstack run`."""

from infra.jobs.gcp import plan
from infra.jobs.gcp.service import VertexService


class VertexRuns(VertexService):
    """Custom jobs of a stack, and their part of a run's plan. See `service_part.RunService`."""

    part = staticmethod(plan.part)
