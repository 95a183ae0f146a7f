"""Judges of durable writes and cold reads, and of refused operations (pure)."""

import math
import statistics
from collections.abc import Callable, Sequence

from smoke_training.evidence import Evidence, UndeliveredError
from smoke_training.evidence.storage import StorageError, StorageTimes
from smoke_training.judges.common import finite, host_name
from smoke_training.model import PLAN, Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import noise, slowness
from smoke_training.statistics.estimators import Rows
from smoke_training.statistics.slowness import HALVED, TOLERATED, Slowness

WARM_SHARE = 0.05  # of the pages still cached: above it a read measures memory, not storage
FULL_DISK = ("ENOSPC", "EDQUOT")
# Less than half of EBS's slowest general-purpose volume (gp3, 125 MiB/s): equally slow nodes without a
# declared rate are then no pass.
CRAWL_MB_S = 50.0
SPEAKS = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.SKIPPED)  # the worst target first


def refused(phase: str, found: Evidence) -> Check | None:
    """Return the check for an operation that the operating system refused in a phase; None without one.

    A full disk is a fault of the stack (FAIL); anything else leaves the measure undone (ERROR).
    """
    errors = [item for item in found.all_of(StorageError) if item.phase == phase]
    if not errors:
        return None
    full = any(item.errno in FULL_DISK for item in errors)
    first = errors[0]
    where = f"{first.name} ({first.path})"
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
        next_action=f"Free space on {where}, or enlarge it, then run again."
        if full
        else f"Check path and permissions of {where}.",
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


def _refusing(errors: Sequence[StorageError], found: Evidence) -> tuple[Culprit, ...]:
    """One culprit per storage and node, with the errors of its ranks."""
    refused: dict[tuple[str, int], list[StorageError]] = {}
    for item in errors:
        refused.setdefault((item.name, item.node), []).append(item)
    culprits = []
    for (name, node), items in refused.items():
        cause = Cause.DISK_FULL if any(item.errno in FULL_DISK for item in items) else Cause.UNKNOWN
        text, host = tuple(_refusal(item) for item in items[:5]), host_name(node, found)
        culprits.append(Culprit("storage", f"{name}@{node}", cause, text, node=host))
    return tuple(culprits)


def write(plan: Plan, found: Evidence) -> Check:
    """Judge durable writes: nodes against each other, and against the declared rate where there is one."""
    return refused("storage", found) or _check(plan, found, "write")


def read(plan: Plan, found: Evidence) -> Check:
    """Judge reads past the page cache: nodes against each other. A warm cache is reported, not judged."""
    if any(item.phase == "storage" and item.operation == "write" for item in found.all_of(StorageError)):
        return Check.skipped("Not measured: nothing could be written to read back.")
    return refused("storage", found) or _check(plan, found, "read")


class _Finding:
    """Assessment of one direction of one target."""

    def __init__(self, plan: Plan, item: StorageTimes, direction: str) -> None:
        self.item, self.direction = item, direction
        writing = direction == "write"
        self.rows: Rows = item.write if writing else item.read
        self.bytes = item.write_bytes if writing else item.read_bytes
        queue = item.write_queue if writing else item.read_queue
        self.queue_share = noise.queue_share(self.rows, queue)
        times = noise.without_queue(self.rows, queue, parts=slowness.KEPT_PARTS)
        target = next((t for t in plan.storage if t.name == item.name), None)
        self.declared = target.write_mb_s if target and writing else None
        self.source = (target.source if target else None) or PLAN
        resident = [1.0 if share is None else share for share in item.resident_share]
        self.warm = not writing and max(resident) > WARM_SHARE
        self.peers: tuple[Slowness, ...] = ()
        self.absolute: tuple[Slowness, ...] = ()
        if len(self.rows) > 1 and not self.warm:
            self.peers = slowness.factors(item.nodes, times)
        if self.declared is not None:
            self.absolute = slowness.factors(item.nodes, times, self.bytes / 1e6 / self.declared)
        self.scores = (*self.peers, *self.absolute)
        # The slowest node; one that fails before one that does not.
        both = (*self.absolute, *self.peers)
        self.worst = max(both, key=lambda s: (s.verdict is Verdict.FAIL, s.value), default=None)
        # Median MB/s of every node; the mean for bursty repetitions.
        typical: Callable[[Sequence[float]], float]
        typical = statistics.fmean if slowness.bursty(self.rows) else statistics.median
        mb = self.bytes / 1e6
        stream = min(item.stream_mb_s, default=math.inf) if writing and self.declared is None else math.inf
        self.crawl = stream if stream < CRAWL_MB_S else None  # MB/s of the slowest node
        self.rates = {node: mb / typical(row) for node, row in zip(item.nodes, self.rows, strict=True)}

    @property
    def status(self) -> Verdict:
        if not self.scores:
            return Verdict.SKIPPED if self.crawl is None else Verdict.INCONCLUSIVE
        status = slowness.combined(self.scores)
        if status is Verdict.PASS and self.crawl is not None:
            return Verdict.INCONCLUSIVE
        noisy = status is Verdict.FAIL and (self.queue_share or 0.0) > noise.QUEUE_LIMIT
        return Verdict.INCONCLUSIVE if noisy else status

    def yardstick(self, score: Slowness) -> str:
        if score in self.absolute:
            return f"than the declared {self.declared:.0f} MB/s"
        return "than the other nodes"

    def sentence(self) -> str:
        worst, name = self.worst, self.item.name
        if self.crawl is not None and self.status is Verdict.INCONCLUSIVE:
            return (
                f"{name}: a long write reaches {self.crawl:.1f} MB/s on the slowest node; below "
                f"{CRAWL_MB_S:.0f} MB/s, and no declared rate allows that"
            )
        if worst is None:
            slowest = min(self.rates.values())
            why = "its pages stay in the cache" if self.warm else "one node, no declared rate"
            return f"{name}: {slowest:.0f} MB/s {self.direction}; reported, not judged ({why})"
        return (
            f"node {worst.node} {self.direction}s {name} {worst.value:.2f}x slower {self.yardstick(worst)} "
            f"({self.rates[worst.node]:.0f} MB/s; interval {worst.low:.2f} .. {worst.high:.2f})"
        )

    def culprits(self, found: Evidence) -> list[Culprit]:
        slow = {s.node: s for s in self.scores if s.verdict is Verdict.FAIL}
        failing = [s for s in self.absolute if s.verdict is Verdict.FAIL]
        reached = any(s.verdict is Verdict.PASS for s in self.absolute)
        apart = any(s.verdict is Verdict.FAIL for s in self.peers)
        if failing and (len(failing) == len(self.absolute) or not (reached or apart)):
            # Every node is below the declared rate, or none is shown to reach it and none to be slower than
            # the others: the service is slow, or the path that all of them share.
            worst = max(failing, key=lambda s: s.value)
            return [self._culprit(self.item.name, worst, None)]
        return [
            self._culprit(f"{self.item.name}@{node}", score, host_name(node, found))
            for node, score in sorted(slow.items())
        ]

    def _culprit(self, name: str, score: Slowness, host: str | None) -> Culprit:
        how = "fsync included" if self.direction == "write" else "past the page cache"
        evidence = [
            f"{self.direction}s of {self.bytes} bytes take {score.value:.2f}x longer "
            f"{self.yardstick(score)}, over {score.blocks} blocks ({score.statistic} of each)",
            f"{self.rates[score.node]:.0f} MB/s on node {score.node}, {how}",
        ]
        if self.queue_share is not None:
            evidence.append(f"at most {self.queue_share:.0%} of any node's time was spent waiting for a CPU")
        ci = finite(*score.ci95)
        return Culprit(
            "storage", name, Cause.SLOW_STORAGE, tuple(evidence), node=host, score=score.value, ci=ci
        )

    def detail(self) -> dict[str, object]:
        item = self.item
        shown: dict[str, object] = {
            "name": item.name,
            "path": item.path,
            "bytes": self.bytes,
            "mb_s": [{"node": node, "value": rate} for node, rate in self.rates.items()],
            "factors": [
                {
                    "node": score.node,
                    "factor": score.value,
                    "statistic": score.statistic,
                    "decides": finite(score.low, score.high),
                }
                for score in self.scores
            ],
        }
        if self.direction == "write":
            streams = {"first_write_mb_s": list(item.first_write_mb_s), "stream_mb_s": list(item.stream_mb_s)}
            return shown | streams
        opens = sorted(value for row in item.open for value in row)
        return shown | {
            "resident_share": list(item.resident_share),
            "cache": "warm" if self.warm else "cold",
            "open_p99_s": opens[min(len(opens) - 1, int(0.99 * len(opens)))] if opens else None,
            "opens": len(opens),
        }


def _check(plan: Plan, found: Evidence, direction: str) -> Check:
    """Make one check of all targets; the worst target is reported first."""
    findings = [_Finding(plan, item, direction) for item in found.all_of(StorageTimes)]
    if not findings:
        raise UndeliveredError("storage")
    ordered = sorted(findings, key=lambda finding: SPEAKS.index(finding.status))
    first = ordered[0]
    status, worst = first.status, first.worst
    shown, ci = min(rate for f in findings for rate in f.rates.values()), None
    if worst is not None:
        shown, factors = first.rates[worst.node], finite(*worst.ci95)
        base = shown * worst.value  # the value of factor 1 on that node
        ci = (base / factors[1], base / factors[0]) if factors else None
    return Check(
        status=status,
        required=any(f.scores or f.crawl is not None for f in findings),
        measured=Measured(
            value=shown,
            unit="MB/s",
            n=len(first.rows[0]),
            estimator="median of the slowest node; factors are 20 % trimmed means over blocks of log ratios",
            ci=ci,
            detail={"targets": [f.detail() for f in findings]},
        ),
        expected=_expected(first),
        zone=(TOLERATED, HALVED) if first.scores else None,
        noise={"queue_share": first.queue_share},
        culprits=tuple(c for f in findings for c in f.culprits(found)) if status is Verdict.FAIL else (),
        message="; ".join(f.sentence() for f in ordered),
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
    if status is Verdict.INCONCLUSIVE and finding.crawl is not None:
        return f"Give {finding.item.name} ({finding.item.path}) more throughput, or declare its write_mb_s."
    return "Run again when the storage is quieter." if status is Verdict.INCONCLUSIVE else None
