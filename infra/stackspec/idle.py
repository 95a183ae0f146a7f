"""Handling of allocated but unused GPUs."""

from typing import Annotated, Literal

from pydantic import Field

from infra.stackspec.model import Model


class IdleGpusSpec(Model):
    """Owners of idle GPUs are notified, and jobs stopped after a grace period (docs/explanation/idle.md).

    Excluded: those that started within the hour, wrote a checkpoint less than one interval ago, or have no
    GPU metrics.
    """

    minutes: Annotated[int, Field(ge=10, le=720)]
    """Minutes for which all GPUs must be idle before the notification."""

    grace_minutes: Annotated[int, Field(ge=5, le=720)]
    """Minutes between notification and stop; GPU activity cancels the stop."""

    jobs: Literal["announce", "stop"]
    """`stop`: jobs are stopped, and can be restarted. `announce`: only notified. Sessions (on interactive
    pools, or with the label `trainstack.dev/purpose: interactive`) are always stopped."""
