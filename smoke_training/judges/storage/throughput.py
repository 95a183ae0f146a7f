"""Judges of durable writes and cold reads, and what a refusal of the operating system means (pure)."""

import statistics
from collections.abc import Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.storage import Storage, StorageError
from smoke_training.judges.common import finite, host_name
from smoke_training.model import PLAN, Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import slowness
from smoke_training.statistics.slowness import HALVED, TOLERATED, Rows, Slowness

WARM_SHARE = 0.05  # of the pages still cached: above it a read tells of memory, not of storage
NOISY_QUEUE_SHARE = 0.10  # of the time spent waiting for a CPU; as in the judge of the training step
FULL_DISK = ("ENOSPC", "EDQUOT")


def refused(phases: Sequence[str], found: Evidence) -> Check | None:
    """What a refusal of the operating system in one of these phases means for a check; None without one.

    A full disk is a fault of the stack (FAIL); anything else leaves the measure undone (ERROR).
    """
    errors = [item for item in found.all_of(StorageError) if item.phase in phases]
    if not errors:
        return None
    full = any(item.errno in FULL_DISK for item in errors)
    first = errors[0]
    return Check(
        status=Verdict.FAIL if full else Verdict.ERROR,
        measured=Measured(
            value=None,
            unit="MB/s",
            n=0,
            estimator="none",
            reason="the operating system refused",
            detail={"bytes_wanted": first.bytes_wanted, "bytes_free": first.bytes_free},
        ),
        culprits=_refusing(errors, found),
        message="; ".join(_refusal(item) for item in errors[:4]),
        next_action=_room(first) if full else f"Check path and permissions of {first.name} ({first.path}).",
    )


def _refusal(item: StorageError) -> str:
    figures = [f"{item.bytes_wanted} bytes wanted"] if item.bytes_wanted is not None else []
    figures += [f"{item.bytes_free} free"] if item.bytes_free is not None else []
    text = f"rank {item.rank} on node {item.node} could not {item.operation} {item.path}: {item.errno} "
    text += f"({', '.join([item.message, *figures])})"
    if item.left_behind:
        text += f"; left behind: {', '.join(item.left_behind)}"
    if item.previous_complete is not None:
        text += f"; the checkpoint before is {'still complete' if item.previous_complete else 'DAMAGED'}"
    return text


def _room(item: StorageError) -> str:
    return f"Make room on {item.name} ({item.path}), or give it more bytes, then run again."


def _refusing(errors: Sequence[StorageError], found: Evidence) -> tuple[Culprit, ...]:
    """One culprit per storage and node, with what each of its ranks met."""
    refused: dict[tuple[str, int], list[StorageError]] = {}
    for item in errors:
        refused.setdefault((item.name, item.node), []).append(item)
    return tuple(
        Culprit(
            kind="storage",
            id=f"{name}@{node}",
            node=host_name(node, found),
            cause=Cause.DISK_FULL if any(item.errno in FULL_DISK for item in items) else Cause.UNKNOWN,
            evidence=tuple(_refusal(item) for item in items[:5]),
        )
        for (name, node), items in refused.items()
    )


def write(plan: Plan, found: Evidence) -> Check | None:
    """Durable writes: nodes against each other, and against the declared rate where there is one."""
    stopped = refused(("storage",), found)
    if stopped is not None:
        return stopped
    series = found.all_of(Storage)
    if not series:
        return None
    return _check([_Finding(plan, item, "write") for item in series], found)


def read(plan: Plan, found: Evidence) -> Check | None:
    """Reads from behind the page cache: nodes against each other. A warm cache is reported, not judged."""
    if any(item.phase == "storage" and item.operation == "write" for item in found.all_of(StorageError)):
        why = "Not measured: nothing could be written to read back."
        return Check.skipped(why)
    stopped = refused(("storage",), found)
    if stopped is not None:
        return stopped
    series = found.all_of(Storage)
    if not series:
        return None
    return _check([_Finding(plan, item, "read") for item in series], found)


class _Finding:
    """What one direction of one target says."""

    def __init__(self, plan: Plan, item: Storage, direction: str) -> None:
        self.item, self.direction = item, direction
        self.rows: Rows = item.write if direction == "write" else item.read
        self.bytes = item.write_bytes if direction == "write" else item.read_bytes
        self.queue = item.write_queue if direction == "write" else item.read_queue
        times = slowness.without_queue(self.rows, self.queue)
        target = next((t for t in plan.storage if t.name == item.name), None)
        self.declared = target.write_mb_s if target and direction == "write" else None
        self.source = (target.source if target else None) or PLAN
        shares = [share for share in item.resident_share if share is not None]
        known = len(shares) == len(item.resident_share)
        self.warm = direction == "read" and (not known or max(shares) > WARM_SHARE)
        self.peers: tuple[Slowness, ...] = ()
        self.absolute: tuple[Slowness, ...] = ()
        if len(self.rows) > 1 and not self.warm:
            self.peers = slowness.among_peers(item.nodes, times)
        if self.declared is not None:
            self.absolute = slowness.against_declared(item.nodes, times, self.bytes / 1e6 / self.declared)

    @property
    def judged(self) -> bool:
        return bool(self.peers or self.absolute)

    @property
    def status(self) -> Verdict:
        scores = (*self.peers, *self.absolute)
        if not scores:
            return Verdict.SKIPPED
        status = slowness.combined(scores)
        noisy = status is Verdict.FAIL and (self.queue_share or 0.0) > NOISY_QUEUE_SHARE
        return Verdict.INCONCLUSIVE if noisy else status

    @property
    def queue_share(self) -> float | None:
        """The largest share of any node's time that went into waiting for a CPU."""
        if self.queue is None:
            return None
        return max(sum(waits) / sum(times) for waits, times in zip(self.queue, self.rows, strict=True))

    @property
    def worst(self) -> Slowness | None:
        """The slowest node; one that fails before one that does not."""
        scores = [*self.absolute, *self.peers]
        return max(scores, key=lambda s: (s.verdict is Verdict.FAIL, s.factor), default=None)

    def rate(self, node: int) -> float:
        """Median MB/s of a node; the mean where repetitions come in bursts."""
        row = self.rows[self.item.nodes.index(node)]
        typical = statistics.fmean(row) if slowness.bursty(self.rows) else statistics.median(row)
        return self.bytes / 1e6 / typical

    @property
    def rates(self) -> dict[int, float]:
        return {node: self.rate(node) for node in self.item.nodes}

    def yardstick(self, score: Slowness) -> str:
        if score in self.absolute:
            return f"than the declared {self.declared:.0f} MB/s"
        return "than the other nodes"

    def sentence(self) -> str:
        verb, name = ("writes", self.item.name) if self.direction == "write" else ("reads", self.item.name)
        worst = self.worst
        if worst is None:
            slowest = min(self.rates.values())
            why = "its pages stay in the cache" if self.warm else "one node, no declared rate"
            return f"{name}: {slowest:.0f} MB/s {self.direction}; reported, not judged ({why})"
        return (
            f"node {worst.node} {verb} {name} {worst.factor:.2f}x slower {self.yardstick(worst)} "
            f"({self.rate(worst.node):.0f} MB/s; interval {worst.low:.2f} .. {worst.high:.2f})"
        )

    def culprits(self, found: Evidence) -> list[Culprit]:
        slow = {s.node: s for s in (*self.peers, *self.absolute) if s.verdict is Verdict.FAIL}
        failing = [s for s in self.absolute if s.verdict is Verdict.FAIL]
        if len(self.absolute) == len(failing) > 0:
            # Every node is below the declared rate: the service is slow, or the path that all of them share.
            worst = max(failing, key=lambda s: s.factor)
            return [self._culprit(self.item.name, worst, None)]
        return [
            self._culprit(f"{self.item.name}@{node}", score, host_name(node, found))
            for node, score in sorted(slow.items())
        ]

    def _culprit(self, name: str, score: Slowness, host: str | None) -> Culprit:
        evidence = [
            f"{self.direction}s of {self.bytes} bytes take {score.factor:.2f}x longer "
            f"{self.yardstick(score)}, over {score.blocks} blocks ({score.statistic} of each)",
            f"{self.rate(score.node):.0f} MB/s on node {score.node}, fsync included"
            if self.direction == "write"
            else f"{self.rate(score.node):.0f} MB/s on node {score.node}, past the page cache",
        ]
        if self.queue_share is not None:
            evidence.append(f"at most {self.queue_share:.0%} of any node's time was spent waiting for a CPU")
        return Culprit(
            kind="storage",
            id=name,
            node=host,
            score=score.factor,
            ci=finite(*score.ci95),
            cause=Cause.SLOW_STORAGE,
            evidence=tuple(evidence),
        )

    def detail(self) -> dict[str, object]:
        item = self.item
        opens = [value for row in item.open for value in row]
        shown: dict[str, object] = {
            "name": item.name,
            "path": item.path,
            "bytes": self.bytes,
            "mb_s": [{"node": node, "value": rate} for node, rate in self.rates.items()],
            "factors": [_score(s) for s in (*self.peers, *self.absolute)],
        }
        if self.direction == "write":
            return shown | {"first_write_mb_s": list(item.first_write_mb_s)}
        cache = {"resident_share": list(item.resident_share), "cache": "warm" if self.warm else "cold"}
        return shown | cache | {"open_p99_s": _percentile(opens, 0.99), "opens": len(opens)}


def _check(findings: Sequence[_Finding], found: Evidence) -> Check:
    """One check over all targets: the worst target speaks first."""
    order = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.SKIPPED)
    first = min(findings, key=lambda f: order.index(f.status))
    status, worst = first.status, first.worst
    factor = worst.factor if worst else None
    slowest = min(rate for f in findings for rate in f.rates.values())
    shown = first.rate(worst.node) if worst else slowest
    ci = finite(*worst.ci95) if worst else None
    base = shown * factor if factor else None  # what a factor of 1 would have been on that node
    return Check(
        status=status,
        required=any(f.judged for f in findings),
        measured=Measured(
            value=shown,
            unit="MB/s",
            n=len(first.rows[0]),
            estimator="median of the slowest node; factors are 20 % trimmed means over blocks of log ratios",
            ci=(base / ci[1], base / ci[0]) if base and ci else None,
            detail={"targets": [f.detail() for f in findings]},
        ),
        expected=_expected(first),
        zone=(TOLERATED, HALVED) if first.judged else None,
        noise={"queue_share": first.queue_share},
        culprits=tuple(c for f in findings for c in f.culprits(found)) if status is Verdict.FAIL else (),
        message="; ".join(f.sentence() for f in sorted(findings, key=lambda f: order.index(f.status))),
        next_action=_next(status, first),
    )


def _expected(finding: _Finding) -> Expected:
    if finding.declared is not None:
        floor = finding.declared / TOLERATED
        return Expected(value=finding.declared, kind="declared", source=finding.source, floor=floor)
    if finding.peers:
        return Expected(value=None, kind="derived", source="the other nodes", reason="compared with peers")
    return Expected.unknown("no declared rate and nothing to compare")


def _next(status: Verdict, finding: _Finding) -> str | None:
    if status is Verdict.FAIL:
        worst = finding.worst
        where = f"node {worst.node}'s mount of" if worst and finding.peers else "the throughput of"
        return (
            f"Check {where} {finding.item.name} ({finding.item.path}): client, throttling, provisioned rate."
        )
    return "Run again when the storage is quieter." if status is Verdict.INCONCLUSIVE else None


def _score(score: Slowness) -> dict[str, object]:
    interval = finite(score.low, score.high)
    return {"node": score.node, "factor": score.factor, "decides": interval, "statistic": score.statistic}


def _percentile(values: Sequence[float], share: float) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
