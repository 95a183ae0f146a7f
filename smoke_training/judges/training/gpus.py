"""Judges of single GPUs: speed and correctness of products, and the drivers' error counters (pure).

Untested on hardware, but for the rate of one healthy H100.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from smoke_training.evidence import Evidence
from smoke_training.evidence.gpus import Burn, Gpus, GpuState
from smoke_training.evidence.world import World
from smoke_training.expected import compute as expectations
from smoke_training.expected.lookup import MIG
from smoke_training.judges.common import finite, host_of, next_step
from smoke_training.judges.training.causes import CLOCK_FAULTS
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics.medians import median_interval

BELOW_SHARE = 0.9  # of the blocks: occasional slowness is not accused
# Of the median of its peers. Below the first it is slow if its clock is at fault, else a doubt: healthy GPUs
# of one cluster differ by 8 % on average (Sinha et al., SC22, arXiv:2208.11035), and gpu-fryer flags 10 %
# below the best GPU of a node (huggingface/gpu-fryer, README, --tflops-tolerance). Below the second: slow.
PEER_SHARE, SLOW_SHARE = 0.92, 0.85
PEERS = 3  # with fewer of them the median may be the odd one
CPUS = "Not measured: the ranks compute on CPUs."
HEALTHY = "none"
REMEDIES = {
    Cause.CLOCK: "Check power and cooling of node {node} (nvidia-smi -q -d PERFORMANCE), or replace it.",
    "stack": "Look at power caps, clocks (nvidia-smi -q -d PERFORMANCE) and other users of these GPUs.",
    "": "Take node {node} out and test its GPUs (dcgmi diag -r 3), then run the validation again.",
}


def compute(plan: Plan, found: Evidence) -> Check:
    """Check that every GPU multiplies as fast as its model does, independent of the others."""
    record, cluster = _delivered(found), found.need(World)
    if record is None:
        return Check.skipped(CPUS)
    if len(set(record.uuids)) < len(record.uuids):
        return Check.skipped("Not judged: ranks share a GPU.")
    if MIG in cluster.ranks[0].device:
        return Check.skipped(f"Not judged: {cluster.ranks[0].device} is a slice of a GPU.")
    against = expectations.reference(plan, cluster.ranks[0].device, record.dtype)
    operations = 2 * record.size**3 * record.products
    rates = {  # TFLOPS of a GPU's blocks once it is warm
        rank: [operations / seconds / 1e12 for seconds in row[len(row) // 2 :]]
        for rank, row in enumerate(record.seconds)
    }
    medians = {rank: statistics.median(row) for rank, row in rates.items()}
    peers = peer_medians(medians, cluster)
    slowest = min(medians, key=medians.__getitem__)
    status = Verdict.INCONCLUSIVE
    if against.expected.floor is not None and medians[slowest] >= against.expected.floor:
        status = Verdict.PASS
    slow = [rank for rank, row in rates.items() if _below(row, against.fail_below)]
    odd = [rank for rank, peer in peers.items() if _below(rates[rank], slow_share(record, rank) * peer)]
    doubts = [rank for rank, peer in peers.items() if _below(rates[rank], PEER_SHARE * peer)]
    if doubts:
        status = Verdict.INCONCLUSIVE
    if slow or odd:
        status = Verdict.FAIL
    culprits = _slow(record, cluster, medians, sorted({*slow, *odd}), peers)
    like = _slow(record, cluster, medians, sorted({*doubts} - {*slow, *odd}), peers)
    perhaps = [f"{item.evidence[0]}: healthy GPUs may differ by as much" for item in like[:8]]
    floor, line, within = against.expected.floor, against.fail_below, median_interval(rates[slowest])
    return Check(
        status=status,
        required=line is not None or bool(doubts),  # without a source or an odd one it is only reported
        measured=Measured(
            value=medians[slowest],
            unit="TFLOPS",
            n=len(rates[slowest]),
            estimator="slowest GPU, median of the second half of its blocks of products",
            ci=finite(within.low, within.high),
            detail={
                "ranks": list(medians.values()),
                "of_peers": [medians[rank] / peers[rank] if rank in peers else None for rank in medians],
                "dtype": record.dtype,
                "size": record.size,
            },
        ),
        expected=against.expected,
        zone=None if line is None or floor is None else (line, floor),
        culprits=culprits,
        message="; ".join([_message(record, cluster, medians, culprits, against.expected), *perhaps]),
        next_action=next_step(status, culprits, REMEDIES, REMEDIES["stack"]),
    )


def peer_medians(figures: Mapping[int, float], cluster: World) -> dict[int, float]:
    """Median of the other GPUs of a GPU's model, by rank; no entry for one with fewer than PEERS of them."""
    models = {rank: cluster.ranks[rank].device for rank in figures}
    found = {}
    for rank in figures:
        others = [figures[peer] for peer in figures if peer != rank and models[peer] == models[rank]]
        if len(others) >= PEERS:
            found[rank] = statistics.median(others)
    return found


def _delivered(found: Evidence) -> Gpus | None:
    """Return the record; None where the ranks compute on CPUs."""
    return found.need(Gpus) if found.need(World).ranks[0].backend == "nccl" else None


def _below(rates: Sequence[float], line: float | None) -> bool:
    return line is not None and sum(rate < line for rate in rates) >= BELOW_SHARE * len(rates)


def _reasons(record: Gpus | Burn, rank: int) -> list[str]:
    return sorted(CLOCK_FAULTS & set(record.windows[rank].clock_reasons))


def slow_share(record: Gpus | Burn, rank: int) -> float:
    """Return the share of its peers' median below which a GPU is slow."""
    return PEER_SHARE if _reasons(record, rank) else SLOW_SHARE


def _slow(
    record: Gpus,
    cluster: World,
    medians: Mapping[int, float],
    slow: Sequence[int],
    peers: Mapping[int, float],
) -> tuple[Culprit, ...]:
    """Accuse the slow GPUs by their ranks; the stack if all of several are slow."""

    def words(rank: int) -> str:
        text = f"rank {rank}: {medians[rank]:.0f} TFLOPS"
        text += f", {medians[rank] / peers[rank]:.2f} of the median of its peers" if rank in peers else ""
        reasons = _reasons(record, rank)
        return f"{text}, its clock is limited by {', '.join(reasons)}" if reasons else text

    def cause(rank: int) -> Cause:
        return Cause.CLOCK if _reasons(record, rank) else Cause.SLOW_COMPUTE

    if len(slow) == len(medians) > 1:
        return (Culprit("stack", "GPUs", cause(slow[0]), tuple(words(rank) for rank in slow[:8])),)
    return tuple(
        Culprit("rank", str(rank), cause(rank), (words(rank),), node=host_of(rank, cluster)) for rank in slow
    )


def _message(
    record: Gpus,
    cluster: World,
    medians: Mapping[int, float],
    culprits: Sequence[Culprit],
    expected: Expected,
) -> str:
    slowest = min(medians, key=medians.__getitem__)
    text = f"slowest of {len(medians)} GPUs: {medians[slowest]:.0f} TFLOPS ({record.dtype}) of rank {slowest}"
    text += f" on node {host_of(slowest, cluster)}"
    if expected.value is None:
        text += f"; no_reference, only compared with each other: {expected.reason}"
    else:
        text += f" (expected >= {expected.floor or 0:.0f}, {expected.kind}: {expected.source})"
        text += f"; {expected.reason}" if expected.reason else ""
    found = [line for culprit in culprits for line in culprit.evidence]
    text += f"; {len(found)} of {len(medians)} are slow" if found else ""
    return "; ".join([text, *found[:8]])


def bits(_plan: Plan, found: Evidence) -> Check:
    """Check that one product has the same bits every time and on all GPUs."""
    record, cluster = _delivered(found), found.need(World)
    if record is None:
        return Check.skipped(CPUS)
    blocks, usual = sum(len(row) for row in record.bits), _usual(record)
    odd = {} if usual is None else {rank: len(row) - row.count(usual) for rank, row in enumerate(record.bits)}
    culprits = tuple(_wrong(rank, count, record, cluster) for rank, count in odd.items() if count)
    status = Verdict.FAIL if culprits else Verdict.INCONCLUSIVE if usual is None else Verdict.PASS
    text = f"{blocks} results of one product on {len(record.bits)} GPUs are the same, bit by bit"
    if usual is None:
        text = f"{blocks} results of one product differ so widely that no GPU is to blame"
    return Check(
        status=status,
        measured=Measured(
            value=None if usual is None else float(sum(odd.values())),
            unit="results with other bits",
            n=blocks,
            estimator="count of results that are not those of most GPUs",
            reason="no result is that of most GPUs" if usual is None else None,
        ),
        expected=Expected.exactly(0.0, "one cuBLAS on GPUs of one kind gives the same bits"),
        culprits=culprits,
        message="; ".join(f"rank {item.id}: {item.evidence[0]}" for item in culprits[:8]) or text,
        next_action=next_step(status, culprits, REMEDIES, "Give all nodes the same GPUs and image."),
    )


def _usual(record: Gpus) -> int | None:
    """Return the result of most work, with equal weights of the GPUs; None without a majority."""
    weights = defaultdict[int, Fraction](Fraction)
    for row in record.bits:
        for value, count in Counter(row).items():
            weights[value] += Fraction(count, len(row))
    value, weight = max(weights.items(), key=lambda item: item[1])
    return value if 2 * weight > len(record.bits) else None


def _wrong(rank: int, count: int, record: Gpus, cluster: World) -> Culprit:
    text = (
        f"{count} of {len(record.bits[rank])} results of one product are not, bit by bit, those of most GPUs"
    )
    return Culprit("rank", str(rank), Cause.CORRUPTION, (text,), node=host_of(rank, cluster))


def state(_plan: Plan, found: Evidence) -> Check:
    """Check that no driver requests a reset, and no GPU has run out of spare memory rows.

    Contained uncorrectable errors and rows waiting for replacement do not affect further work (NVIDIA GPU
    Memory Error Management, "Error Recovery and Response Flags"): where the driver requests no action they
    are only reported, and where it does not report one the check is undecided.
    """
    record, cluster = _delivered(found), found.need(World)
    if record is None:
        return Check.skipped(CPUS)
    known = {rank: item for rank, item in enumerate(record.states) if item is not None}
    if not known:
        return Check.skipped("Not judged: no driver library (NVML) in the ranks' image.")
    faults = _narrow(known, cluster)
    faults |= {rank: why for rank, item in known.items() if (why := _fault(item)) is not None}
    doubts = {rank: why for rank, item in known.items() if (why := _doubt(item)) is not None}
    open_ = [rank for rank in doubts if known[rank].action is None]
    status = Verdict.FAIL if faults else Verdict.INCONCLUSIVE if open_ else Verdict.PASS
    reported = [
        f"rank {rank} on node {host_of(rank, cluster)}: {why}" for rank, why in (faults | doubts).items()
    ]
    culprits = tuple(
        Culprit("rank", str(rank), Cause.CORRUPTION, (why,), node=host_of(rank, cluster))
        for rank, why in faults.items()
    )
    links = {str(r): _link(item) for r, item in known.items()}
    what = "those that have to be reset or replaced"
    return Check(
        status=status,
        measured=Measured.count(len(faults), "GPUs", len(known), what, links=links),
        expected=Expected.exactly(0.0, "NVIDIA GPU Memory Error Management"),
        culprits=culprits,
        message="; ".join(reported[:8]) or f"the drivers of {len(known)} GPUs request no action",
        next_action=next_step(status, culprits, REMEDIES, "Reset these GPUs, or replace their nodes."),
    )


def _fault(item: GpuState) -> str | None:
    if item.remap_failed:
        return "a failing row of its memory could not be replaced"
    return None if item.action in (None, HEALTHY) else f"its driver requests: {item.action}"


def _narrow(known: Mapping[int, GpuState], cluster: World) -> dict[int, str]:
    """GPUs with a narrower PCI Express link, or fewer NVLinks, than those of their model on their node have.

    Only peers are compared: virtual machines may show less than there is, and GPUs without bridges report
    links that are down (NVIDIA/NVSentinel#1481).
    """
    found = {}
    for rank, item in known.items():
        place = cluster.ranks[rank]
        peers = [
            known[other]
            for other in known
            if (cluster.ranks[other].node, cluster.ranks[other].device) == (place.node, place.device)
        ]
        for what, own, others in (
            ("lanes of PCI Express", item.link and item.link[1], [p.link and p.link[1] for p in peers]),
            ("active NVLinks", item.nvlinks, [peer.nvlinks for peer in peers]),
        ):
            usual = statistics.median_low([other for other in others if other is not None] or [0])
            if own is not None and own < usual:
                found[rank] = f"{own} {what}, its peers have {usual}"
    return found


def _doubt(item: GpuState) -> str | None:
    parts = [f"{item.uncorrected} uncorrectable memory errors since its driver was loaded"]
    parts = parts if item.uncorrected else []
    parts += ["rows of its memory wait to be replaced at the next reset"] if item.remap_pending else []
    return "; ".join(parts) or None


def _link(item: GpuState) -> str | None:
    """PCI Express, for readers: virtual machines may show less than there is."""
    if item.link is None or item.link_most is None:
        return None
    return "generation {} x{} of generation {} x{}".format(*item.link, *item.link_most)
