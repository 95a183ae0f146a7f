"""Judge of error counters over the run: RDMA ports, PCI Express, NVLink, Xid errors (pure).

Only changes during the run count: what a node had before says nothing about it now, and what is unreadable is
unknown. Limits are rows with sources (`expected/devices.toml`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from smoke_training.evidence import Evidence
from smoke_training.evidence.gpus import DeviceChanges
from smoke_training.expected.devices import DOUBT, FAIL, CounterLimit, shipped
from smoke_training.judges.common import next_step, node_name
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import poisson
from smoke_training.statistics.estimators import Z_DECISION

SECONDS = {"second": 1.0, "minute": 60.0}
SENT = ("port_xmit_data", "tx_bytes")  # a port that carried nothing is not judged
AGAIN = "Run again: a GPU that replaces rows of its memory more than once has to be looked at."
REMEDIES = {"node": "Take node {node} out and look at the named device, then run the validation again."}


@dataclass(frozen=True)
class _Finding:
    node: int
    device: str
    text: str
    cause: Cause | None  # None: only reported
    doubt: bool = False


def errors(_plan: Plan, found: Evidence) -> Check:
    """Check that no device counted errors beyond its limits, and none was lost."""
    records = found.all_of(DeviceChanges)
    unread = {
        f"{source} on node {node_name(item.node, found)}: {why}"
        for item in records
        for source, why in item.unreadable.items()
    }
    if not any(item.counted or item.changed or item.lost for item in records):
        why = "; ".join(sorted(unread)[:4]) or "no counters were read"
        return Check.skipped(f"Not judged: {why}.")
    findings = sorted((one for item in records for one in _findings(item)), key=lambda one: one.cause is None)
    faults = [item for item in findings if item.cause is not None]
    words = [f"{item.device} on node {node_name(item.node, found)}: {item.text}" for item in findings]
    open_ = any(item.doubt for item in findings)
    status = Verdict.FAIL if faults else Verdict.INCONCLUSIVE if open_ else Verdict.PASS
    counted = sum(item.counted for item in records)
    culprits = tuple(
        Culprit("node", str(item.node), item.cause or Cause.UNKNOWN, (f"{item.device}: {item.text}",),
                node=node_name(item.node, found))
        for item in faults
    )  # fmt: skip
    text = "; ".join(words[:8]) or f"{counted} counters of {len(records)} nodes stayed within their limits"
    unknown = [f"unknown: {why}" for why in sorted(unread)[:4]]
    return Check(
        status=status,
        measured=Measured.count(
            len(faults),
            "devices' counters",
            counted,
            "those above their limits, differences over the run",
            findings=words,
            unreadable=sorted(unread),
            redirecting_bridges={str(item.node): item.redirecting for item in records},
            iommu={str(item.node): item.iommu for item in records},
        ),
        expected=Expected.exactly(0.0, "expected/devices.toml, each with its source"),
        culprits=culprits,
        message="; ".join([text, *_access(records), *unknown]),
        next_action=next_step(status, culprits, REMEDIES, AGAIN),
    )


def _findings(item: DeviceChanges) -> Iterator[_Finding]:
    for device in item.lost:
        gone = Cause.GPU_FAILED if device.startswith("gpu/") else Cause.DEAD_RAIL
        yield _Finding(item.node, device, "it was there at the start and is gone", gone)
    for name, count in sorted(item.changed.items()):
        device, _, counter = name.rpartition("/")
        if counter.startswith(("xid ", "sxid ")):
            yield _message(item.node, device, counter, count)
        elif (limit := shipped().counters.get(counter)) is not None and _above(item, device, count, limit):
            carried = not device.startswith("port/") or any(
                item.changed.get(f"{device}/{way}") for way in SENT
            )
            cause = Cause(limit.cause) if limit.verdict == FAIL and carried else None
            text = f"{limit.meaning} ({counter} +{count} in {item.seconds:.0f} s; {limit.source.text})"
            yield _Finding(item.node, device, text, cause, limit.verdict == DOUBT)


def _above(item: DeviceChanges, device: str, count: int, limit: CounterLimit) -> bool:
    """True if the change is above its limit for certain."""
    if limit.per == "run":
        return count > limit.above
    exposure = item.seconds / SECONDS.get(limit.per, 1.0)
    if limit.per == "bit":
        exposure *= 2 * item.changed.get(f"{device}/pcie_bits_s", 0)
    return exposure > 0 and poisson.bounds(count, Z_DECISION)[0] > limit.above * exposure


def _message(node: int, device: str, counter: str, count: int) -> _Finding:
    kind, code, *more = counter.split()
    rule = shipped().xids.get(int(code)) if kind == "xid" else None
    text = f"{kind[:-2].upper()}{kind[-2:]} {code}{' ' + ' '.join(more) if more else ''}, {count} times"
    rule = rule if rule and rule.only in ("", *more) else None
    if rule is not None:
        text += f": {rule.action} ({rule.source.text})"
    causes = {"asks": Cause.GPU_FAILED} if kind == "xid" else {"fatal": Cause.SLOW_LINK}  # NVLink's switches
    cause = Cause(rule.cause) if rule is not None else causes.get(" ".join(more))
    return _Finding(node, device, text, cause)


def _access(records: tuple[DeviceChanges, ...]) -> Iterator[str]:
    """Access control of bridges slows traffic between devices (NVIDIA/nccl#2409); with ATS it is intended."""
    redirected = [item for item in records if item.redirecting and item.iommu in ("off", "passthrough")]
    if redirected:
        count = sum(len(item.redirecting or ()) for item in redirected)
        yield f"access control (ACS) of {count} PCI bridges redirects traffic between devices"
