"""Judges of sustained work: bits of repeated steps, rates of products and copies (pure)."""

import statistics
from collections import Counter

from smoke_training.evidence import Evidence
from smoke_training.evidence.gpus import Burn
from smoke_training.evidence.world import World
from smoke_training.expected import compute as expectations
from smoke_training.expected.devices import shipped
from smoke_training.expected.lookup import MIG
from smoke_training.expected.reference import FAULT_SHARE
from smoke_training.judges.common import host_of, next_step
from smoke_training.judges.training.gpus import PEER_SHARE, REMEDIES, peer_medians, slow_share
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan

COMPLETE = 0.99  # of the planned seconds
RARE = 1 / 150  # of the steps of a rank: the fault for which the probability is stated
# Of its peers' median: GPUs differ by the sockets and switches between them and the memory. A link of one
# generation lower, or with half of its lanes, makes 0.50 (a fault to NVIDIA/DCGM: `min_pci_generation`).
COPY_SHARE = 0.6


def bits(_plan: Plan, found: Evidence) -> Check:
    """Check that repeated steps have the same bits every time, and on all devices of one model."""
    record, cluster = found.need(Burn), found.need(World)
    usual: dict[str, tuple[int, ...] | None] = {}
    for device in {rank.device for rank in cluster.ranks}:
        votes = Counter(record.first[rank.rank] for rank in cluster.ranks if rank.device == device)
        first, most = votes.most_common(1)[0]
        # CPUs are no model: products of two generations differ in their last bits.
        alike = 2 * most > votes.total() if cluster.ranks[0].backend == "nccl" else len(votes) == 1
        usual[device] = first if alike else None
    culprits = []
    for rank in cluster.ranks:
        wrong, steps, expected = record.wrong[rank.rank], record.steps[rank.rank], usual[rank.device]
        text = f"{wrong} of {steps} repeated steps have other bits than the first" if wrong else ""
        if expected is not None and record.first[rank.rank] != expected:
            text = f"{text}; " * bool(text) + "its first steps have other bits than those of most ranks"
        if text:
            culprits.append(Culprit("rank", str(rank.rank), Cause.CORRUPTION, (text,), node=rank.host))
    least = min(record.steps)
    done, undecided = record.seconds >= COMPLETE * record.planned_s, None in usual.values()
    status = Verdict.FAIL if culprits else Verdict.PASS if done and not undecided else Verdict.INCONCLUSIVE
    remedy = "Run it on nodes of one kind." if undecided else "Run the burn to its end."
    chance = 1 - (1 - RARE) ** least
    text = f"{sum(record.steps)} steps in {record.seconds:.0f} of {record.planned_s:.0f} s"
    text += "; the first steps of ranks differ, without proof of which are right" * undecided
    text += f"; a fault in one of {1 / RARE:.0f} steps is found with probability {chance:.4f}"
    return Check(
        status=status,
        measured=Measured(
            value=float(sum(record.wrong)),
            unit="steps with other bits",
            n=least,
            estimator="count over all ranks; n is the least of a rank",
            detail={"found_with_probability": chance, "seconds": record.seconds},
        ),
        expected=Expected.exactly(0.0, "the same operations on the same numbers"),
        culprits=tuple(culprits),
        message="; ".join([*(f"rank {item.id}: {item.evidence[0]}" for item in culprits[:8]), text]),
        next_action=next_step(status, culprits, REMEDIES, remedy),
    )


def rates(plan: Plan, found: Evidence) -> Check:
    """Check sustained products and copies of every rank against what was published, and against its peers."""
    record, cluster = found.need(Burn), found.need(World)
    device = cluster.ranks[0].device
    warm = {rank: statistics.median(row[len(row) // 4 :]) for rank, row in enumerate(record.rates)}
    detail = {
        "tflops": list(warm.values()),
        "copies_gb_s": dict(record.copies),
        "files_per_s": {
            kind: dict(zip(map(str, record.nodes), row, strict=True)) for kind, row in record.files.items()
        },
        "watts": list(record.watts),
    }
    measured = Measured(
        value=min(warm.values()),
        unit="TFLOPS",
        n=len(record.rates[0]),
        estimator="slowest rank, median without the first quarter of the windows",
        detail=detail,
    )
    text = f"slowest of {len(warm)} ranks: {measured.value:.3g} TFLOPS in {record.seconds:.0f} s"
    if cluster.ranks[0].backend != "nccl" or MIG in device:
        return Check(
            status=Verdict.SKIPPED,
            required=False,
            measured=measured,
            message=f"{text}; not judged: {device} is no whole GPU",
        )
    against = expectations.reference(plan, device, record.dtype)
    faults, peers = _slow(record, cluster, warm, against.fail_below), peer_medians(warm, cluster)
    doubts = [
        f"rank {rank}: {warm[rank]:.4g} TFLOPS, its peers {peer:.4g}: healthy GPUs may differ by as much"
        for rank, peer in peers.items()
        if warm[rank] < PEER_SHARE * peer and rank not in faults
    ]
    culprits = tuple(
        Culprit("rank", str(rank), Cause.SLOW_COMPUTE, tuple(words), node=host_of(rank, cluster))
        for rank, words in sorted(faults.items())
    )
    floor, line = against.expected.floor, against.fail_below
    healthy = floor is not None and measured.value is not None and measured.value >= floor and not doubts
    status = Verdict.FAIL if culprits else Verdict.PASS if healthy else Verdict.INCONCLUSIVE
    return Check(
        status=status,
        required=line is not None or bool(culprits or doubts),  # without a source it is only reported
        measured=measured,
        zone=None if line is None or floor is None else (line, floor),
        expected=against.expected,
        culprits=culprits,
        message="; ".join([text, *(f"rank {c.id}: {c.evidence[0]}" for c in culprits[:8]), *doubts[:8]]),
        next_action=next_step(status, culprits, REMEDIES, REMEDIES["stack"]),
    )


def _slow(record: Burn, cluster: World, warm: dict[int, float], line: float | None) -> dict[int, list[str]]:
    """Figures of ranks that are below a line of their GPU, or below a share of their peers' median."""
    device = cluster.ranks[0].device.removeprefix("NVIDIA ")
    limits = {"TFLOPS": (warm, PEER_SHARE, line)}
    for kind, row in record.copies.items():
        share, known = PEER_SHARE if kind == "memory" else COPY_SHARE, shipped().rates.get((device, kind))
        found = {rank: rate for rank, rate in enumerate(row) if rate is not None}
        limits[f"GB/s {kind}"] = (found, share, None if known is None else FAULT_SHARE * known.gb_s)
    faults = dict[int, list[str]]()
    for kind, (rates, share, least) in limits.items():
        peers = peer_medians(rates, cluster)
        for rank, rate in rates.items():
            least_share = slow_share(record, rank) if kind == "TFLOPS" else share
            if rank in peers and rate < least_share * peers[rank]:
                faults.setdefault(rank, []).append(f"{rate:.4g} {kind}, its peers {peers[rank]:.4g}")
            elif least is not None and rate < least:
                faults.setdefault(rank, []).append(f"{rate:.4g} {kind}, a healthy one at least {least:.4g}")
    return faults
