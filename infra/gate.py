"""The validations in the engine's state: which ones the last `up` waited for, when, and their results."""

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from smoke_training.verdict_record import records

Resource = Mapping[str, Any]
State = Literal["passed", "failed", "running"]

POOL_LABEL = "trainstack.dev/pool"  # of nodes; components/kubernetes/accelerators.py
_OF_JOB = re.compile(r"\bjob \S+(?: failed\.|:) .*?\b(FAIL|ERROR|INCONCLUSIVE|SKIPPED)\b")
_JOB, _COMPONENT = "kubernetes:batch/v1:Job", "trainstack:index:SmokeTest"


@dataclass(frozen=True)
class Gate:
    """The validation of one pool, which gates the stack."""

    run: str
    """Namespace and name of its Job."""
    state: State
    """`running`: its end is unknown, because it is running or its `up` was killed."""
    since: datetime.datetime | None
    """When the engine recorded its end, or its start."""
    nodes: int
    pool: str
    reason: str
    """Why it did not pass; empty if it did."""

    @property
    def is_open(self) -> bool:
        """Return whether resources that depend on this validation exist or may be created."""
        return self.state == "passed"

    @property
    def line(self) -> str:
        """The result as one line of text."""
        when = f" {self.since:%Y-%m-%d %H:%M} UTC" if self.since else ""
        return f"{self.run} {self.state}{when} on {self.nodes} nodes of pool {self.pool}"


def validation_jobs(resources: Iterable[Resource]) -> list[Resource]:
    """The Jobs of all validations and those that watch them."""
    return [
        one for one in resources
        if one["type"] == _JOB and f"{_COMPONENT}$" in one["urn"] and not one.get("delete")
    ]  # fmt: skip


def gates(resources: Iterable[Resource]) -> list[Gate]:
    """The validations among the `resources` of an engine's state; none where the stack has none yet."""
    found = {job["urn"].rpartition("::")[2]: job for job in validation_jobs(resources)}
    runs = [name for name in sorted(found) if name.endswith("-job")]
    return [_gate(found[name], found.get(f"{name.removesuffix('-job')}-watch")) for name in runs]


def lines(found: Sequence[Gate], wanted: Iterable[str]) -> Iterator[str]:
    """Yield a line for each pool's last validation, then whether the gate is open.

    It is open when each of the pools `wanted` by the stack's spec has passed; one may have no validation yet.
    """
    for gate in found:
        yield f"validation {gate.line}{f': {gate.reason}' if gate.reason else ''}"
    missing = sorted(set(wanted) - {gate.pool for gate in found})
    for pool in missing:
        yield f"validation none of pool {pool} yet"
    if missing or not all(gate.is_open for gate in found):
        yield "gate       closed; `trainstack up` validates again"
    elif found:
        yield "gate       open"


def undecided(errors: Iterable[str]) -> bool:
    """Return whether validations closed the gate, by an engine's errors, and all of them are INCONCLUSIVE."""
    verdicts = {verdict for text in errors for verdict in _verdicts(text)}
    return verdicts == {"INCONCLUSIVE"}


def _verdicts(text: str) -> Iterator[str]:
    """Verdicts of watchers, and of jobs without a cluster (components/jobs/gate_provider.py)."""
    yield from (found.verdict for found in records(text))
    yield from _OF_JOB.findall(text)


def why(errors: Sequence[str]) -> str:
    """The reason of a failed validation: its watcher's record in an engine's errors, else the last error."""
    messages = (found.message for text in errors for found in records(text))
    return next(messages, errors[-1].partition("\n")[0])


def _gate(job: Resource, watcher: Resource | None) -> Gate:
    metadata, spec = job["inputs"]["metadata"], job["inputs"]["spec"]
    state, reason, seen = _ended(metadata["name"], watcher)
    return Gate(
        run=f"{metadata['namespace']}/{metadata['name']}",
        state=state,
        since=_time(seen or job),
        nodes=int(spec["completions"]),
        pool=_pool(spec["template"]["spec"]),
        reason=reason,
    )


def _ended(run: str, watcher: Resource | None) -> tuple[State, str, Resource | None]:
    # A watcher of another name watched the run before this one.
    if watcher is None or watcher["inputs"]["metadata"]["name"] != run:
        return "running", "it was not seen to end", None
    errors = [str(text) for text in watcher.get("initErrors") or ()]
    if not errors:
        return "passed", "", watcher
    return "failed", why(errors), watcher


def _pool(pod: Mapping[str, Any]) -> str:
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    rules = [rule for term in terms["nodeSelectorTerms"] for rule in term["matchExpressions"]]
    return next((str(rule["values"][0]) for rule in rules if rule["key"] == POOL_LABEL), "unknown")


def _time(resource: Resource) -> datetime.datetime | None:
    text = resource.get("modified") or resource.get("created")
    return datetime.datetime.fromisoformat(str(text)) if text else None
