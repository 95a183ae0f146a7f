"""The end of a run, and runs as rows of a table and as JSON (pure)."""

from collections.abc import Iterator, Sequence
from typing import Any

from infra.jobs.money import Prices, cost, most
from infra.jobs.service import JobPhase, JobState, ServiceJob

HEAD = ("run", "person", "machine", "state", "minutes billed", "cost", "reason")
_LONGEST_REASON = 80
_UNKNOWN = "unknown"
# "CapacityError: Unable to provision requested ML compute capacity. Please retry using a different ML
# instance type." is the reason of a job without machines.
_NO_MACHINES = ("Unable to provision requested ML compute capacity", "Resources are insufficient in region")
_VERDICTS = {
    JobPhase.OUT_OF_TIME: "reached --max-hours. Continue from its checkpoints with --resume",
    JobPhase.WAITED_TOO_LONG: "no spot machines within --max-wait. Wait longer, or run with --no-spot",
}


def ending(job: ServiceJob, known: Prices) -> Iterator[str]:
    """The result of a job that has ended: state, cost, and the locations of its outputs."""
    why = reason(job)
    yield f"{job.state.upper()}  {job.name}{f': {why}' if why else ''}"
    yield f"cost         {_money(job, known)}"
    if job.search:
        yield f"best         {job.best or 'no trial reported the metric'}"
    if job.experiment:
        run = f"runs {job.name}-*" if job.search else f"run {job.name}"
        yield f"mlflow       experiment {job.experiment}, {run}"
    if job.model_uri and job.state is not JobState.FAILED:
        yield f"model        {job.model_uri}"
    if job.checkpoint_uri:
        yield f"checkpoints  {job.checkpoint_uri}"


def reason(job: ServiceJob) -> str:
    """The reason that a job did not succeed; empty for one that did, or still runs."""
    if job.state in (JobState.FAILED, JobState.STOPPED):
        if any(text in job.reason for text in _NO_MACHINES):
            return "the cloud has no such machines now. Try later, another machine, or --spot / --no-spot"
        return (
            _VERDICTS.get(job.phase, "")
            or job.reason
            or ("by request" if job.state is JobState.STOPPED else "")
        )
    return job.phase if job.state is JobState.RUNNING else ""


def document(job: ServiceJob, known: Prices) -> dict[str, Any]:
    """A job as JSON; null where a figure is unknown."""
    return {
        "name": job.name,
        "person": job.person or None,
        "team": job.team or None,
        "machine": job.machine,
        "nodes": job.nodes,
        "spot": job.spot,
        "reserved": job.reserved,
        "search": job.search,
        "state": job.state,
        "phase": job.phase,
        "reason": reason(job),
        "created": job.created,
        "ended": job.ended,
        "billed_s": None if job.billed_s is None else job.billed_s + job.warm_s,
        "cost_usd": None if job.search or job.billed_s is None else cost(job, known),
        "most_usd": None if job.search or job.state.over else most(job, known),
        "best": job.best or None,
        "model_uri": job.model_uri or None,
        "checkpoint_uri": job.checkpoint_uri or None,
    }


def machines(job: ServiceJob) -> str:
    """`2 x ml.g6.xlarge spot`."""
    count = f"{job.nodes} x " if job.nodes > 1 else ""
    flex = " flex-start" if job.flex_start else ""
    bought = " spot" if job.spot else " reserved" if job.reserved else flex
    return f"{count}{job.machine}{bought}"


def row(job: ServiceJob, known: Prices) -> Sequence[str]:
    """A job in the columns of `HEAD`."""
    if job.search:  # its trials have rows of their own
        return (
            job.name,
            job.person or "-",
            machines(job),
            job.state,
            "-",
            "its trials",
            job.best or "search",
        )
    usd = cost(job, known) if job.state.over else most(job, known)
    up_to = "" if job.state.over else "up to "
    why = " ".join(reason(job).split())
    return (
        job.name,
        job.person or "-",
        machines(job),
        job.state,
        "-" if job.billed_s is None else f"{(job.billed_s + job.warm_s) / 60:.1f}",
        _UNKNOWN if usd is None else f"{up_to}${usd:,.2f}",
        why if len(why) <= _LONGEST_REASON else f"{why[:_LONGEST_REASON]}...",
    )


def _money(job: ServiceJob, known: Prices) -> str:
    if job.billed_s is None:
        return "not billed: it had not begun" if job.trained_s is None else "not known yet"
    usd = cost(job, known)
    amount = f"cost {_UNKNOWN}: no price of {job.machine}" if usd is None else f"${usd:,.2f}"
    saved = ""
    if job.spot and job.trained_s and job.billed_s < job.trained_s:
        saved = f", {1 - job.billed_s / job.trained_s:.0%} saved by spot"
    warm = f" and {job.warm_s / 60:.1f} of keeping them warm" if job.warm_s else ""
    return f"{amount} ({job.billed_s / 60:.1f} minutes billed of {machines(job)}{warm}{saved})"
