"""What becomes of GPUs that somebody holds and nobody uses."""

from typing import Annotated, Literal

from pydantic import Field

from infra.stackspec.model import Model


class IdleGpusSpec(Model):
    """Holders of idle GPUs are told, and stopped after a while (docs/explanation/idle.md).

    A holder that started within the hour, or wrote a checkpoint less than one interval ago, is never touched;
    nor is one of whose GPUs nobody measured anything.
    """

    minutes: Annotated[int, Field(ge=10, le=720)]
    """So long all GPUs of a holder have to do nothing before it is told."""

    grace_minutes: Annotated[int, Field(ge=5, le=720)]
    """So long it goes on after that; what it does meanwhile takes the announcement back."""

    jobs: Literal["announce", "stop"]
    """What is done to jobs in the end; sessions (on interactive pools, or with the label
    `trainstack.dev/purpose: interactive`) are always stopped. A stopped job can be started again."""
