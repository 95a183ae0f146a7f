"""Checks of the times at which a pool may be used, on every cloud."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from infra.errors import Problem


def moment(text: str) -> datetime | None:
    """A time in RFC 3339 format; None where there is no such time."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def block_problems(path: str, starts: str | None, ends: str | None, drain_minutes: int) -> Iterator[Problem]:
    """A block begins before it ends, and is longer than the `drain_minutes` at its end without jobs.

    `path` is that of the block; problems are at `path.starts` and `path.ends`.
    """
    if (starts is None) != (ends is None):
        missing = "starts" if starts is None else "ends"
        fix = f"Write {path}.{missing}, or leave both out."
        rule = "a block needs both a start and an end"
        yield Problem(f"{path}.{missing}", None, rule, fix, code="block-needs-both-times")
    found = {name: text for name, text in (("starts", starts), ("ends", ends)) if text is not None}
    known = {name: moment(text) for name, text in found.items()}
    for name, at in known.items():
        if at is None:
            fix = "Write one such as 2026-12-01T11:30:00Z."
            yield Problem(f"{path}.{name}", found[name], "there is no such time", fix, code="no-such-time")
    begins, over = known.get("starts"), known.get("ends")
    if begins and over and over - begins <= timedelta(minutes=drain_minutes):
        rule = f"no job could run: nodes are drained in the last {drain_minutes} minutes"
        fix = "Write the times of the block."
        yield Problem(f"{path}.ends", ends, rule, fix, against=f"{path}.starts", code="block-too-short")


def bounds_problems(path: str, least_path: str, least: int) -> Iterator[Problem]:
    """A pool on a block with times has no minimum size: before and after the block no node can start.

    Source: EKS User Guide, capacity-blocks-mng: a group whose block is not active has a desired size of 0.
    """
    if least > 0:
        rule = "nodes would be requested before the block begins, and after its end"
        fix = "Set it to 0: nodes start with jobs."
        yield Problem(least_path, least, rule, fix, against=path, code="block-minimum-not-zero")


def queue_problems(path: str, queue_path: str, *, own_queue: bool) -> Iterator[Problem]:
    """A pool that is not always available has a queue of its own.

    A job that is rejected tries the same pool again, and never the next one: flavors are tried from the first
    one again (sigs.k8s.io/kueue@v0.19.2 pkg/scheduler/flavorassigner, `findFlavorForPodSets`). In a queue of
    several pools it would wait for this one while others are idle.
    """
    if not own_queue:
        rule = "jobs of a shared queue would wait for this pool while others are idle"
        fix = "Set it to true: jobs name the pool's queue."
        yield Problem(queue_path, False, rule, fix, against=path, code="pool-needs-own-queue")
