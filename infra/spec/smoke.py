"""The distributed-training run that every deployment has to pass."""

from typing import Annotated, Literal

from pydantic import Field

from infra.spec.model import Image, Model, Name


class SmokeSpec(Model):
    """How the deployment is validated (R11)."""

    enabled: bool
    """Whether a deployment is gated; without the gate nobody has seen training scale."""

    pool: Name
    """The pool that is validated."""

    nodes: Annotated[int, Field(ge=1, le=64)]
    """Nodes that train together; with one node only scaling inside the node is measured."""

    image: Image
    """Image with Python, PyTorch and, for EFA, the libfabric plugin of NCCL."""

    min_scaling_efficiency: Annotated[float, Field(gt=0, le=1)]
    """Least share of the step time left after communication, 1.0 being no loss at all."""

    timeout_s: Annotated[int, Field(ge=60, le=6 * 3600)]
    """How long the run may take once it is admitted, in seconds."""

    queue_timeout_s: Annotated[int, Field(ge=60, le=24 * 3600)]
    """How long the run may wait for nodes, in seconds."""

    schedule: str | None
    """When the same validation runs again on the live stack, as a cron expression of five fields in UTC, or
    null: only when something is deployed. Such a run uses what is idle and makes way for everything."""

    accept: Annotated[tuple[Literal["PASS", "INCONCLUSIVE"], ...], Field(min_length=1)]
    """Verdicts that open the gate."""
