"""Explanations of the checks (pure): measurement, judgement, reason."""

from collections.abc import Mapping

from smoke_training.formulae.bandwidth import COLLECTIVES

_BANDWIDTH = (
    "PASS from 0.90 on of the lowest figure that was published for this machine type, node count and size, "
    "FAIL below two thirds of it; in between INCONCLUSIVE, where the stack's own accepted runs are the "
    "sharper test. Without any figure or bound (no_reference) accelerators do not pass."
)
_LOCATED = "A slow one is found by comparison with peers measured at the same time; waiting for CPUs acquits."
_UNCALIBRATED = "Between accelerators it is reported only: its limits come from TCP on shaped wires."
_EXACT = "Any deviation is FAIL: there is no noise in an exact comparison."

# By check: the measurement, and how it is judged.
EXPLANATIONS: Mapping[str, tuple[str, str]] = {
    "preflight.devices": (
        "Number of accelerators that each launcher finds before any rank is started.",
        "Fewer than the plan has is FAIL, unless CPU was requested explicitly.",
    ),
    "preflight.world": (
        "Ranks that joined, on the planned number of nodes, with the same versions.",
        "A missing rank or a difference between ranks is FAIL: different software gives different figures.",
    ),
    "preflight.nodes": (
        "Interfaces, drivers, limits and environment of every node, compared with each other and the plan.",
        "A difference that steers communication is FAIL and names the nodes.",
    ),
    "preflight.memory_lock": (
        "Memory that a process may lock on every node: RDMA adapters pin their buffers.",
        "Unlimited passes; Linux's own default is FAIL, what lies between is INCONCLUSIVE.",
    ),
    "host.fitness": (
        "A fixed spin on every rank, with steal, pressure and throttling beside it: noise of the machines.",
        "Named (noisy_host) only where noise prevented a verdict, never a FAIL of training.",
    ),
    "host.quota": (
        "Time for which CPU quotas throttled the ranks while they computed, as the kernel counts it.",
        "Slower than a straggler may be is FAIL, also where all ranks are throttled.",
    ),
    "host.clock": (
        "Reasons for which the driver limited the GPUs' clocks while they computed.",
        "Heat and power faults leave a run undecided, also where all GPUs are throttled; a power cap "
        "is normal for healthy GPUs.",
    ),
    "device.errors": (
        "Error counters of RDMA ports, PCI Express, NVLink and memory, and Xid errors, over the run.",
        "A change above its row's limit is FAIL and names node and device; what cannot be read is unknown.",
    ),
    "gpu.state": (
        "Memory errors, replaced rows, lanes and NVLinks of every GPU, and what its driver requests.",
        "A driver that requests a reset, a row that could not be replaced, or fewer lanes than the peers on "
        "the node have, is FAIL and names the rank; contained errors are reported.",
    ),
    "gpu.bits": (
        "The bits of one matrix product, repeated on all GPUs at once.",
        f"{_EXACT} It names the rank whose GPU computes wrongly.",
    ),
    "gpu.compute": (
        "TFLOPS of that product on every GPU, warm and with all others at work.",
        "PASS from 0.80 on of what was published for this GPU, FAIL below two thirds of it, also if all "
        "are slow, and below 0.92 of the median of its peers. A GPU that no source measured is only compared "
        "with its peers; slices (MIG) are not judged.",
    ),
    "burn.bits": (
        "The bits of a few steps that every rank repeats for minutes.",
        f"{_EXACT} It names the rank; a burn that was ended early is INCONCLUSIVE.",
    ),
    "burn.rates": (
        "Sustained products, copies in memory, to and from the host and between GPUs, and small files.",
        "FAIL below two thirds of what was published for this GPU, or far below the median of its peers; on "
        "CPUs and slices, and for files, reported.",
    ),
    "collective.payload": (
        "Collectives of rank-coded integers, whose exact results are known for every element.",
        f"{_EXACT} The wrong bits name the rank, the wrong elements the part of the array.",
    ),
    **{
        f"collective.{name}": (
            f"Bus bandwidth of {name} over message sizes; time is the maximum over ranks.",
            _BANDWIDTH,
        )
        for name in COLLECTIVES
    },
    "fabric.links": (
        "Rate between every pair of nodes, both directions, in rounds of disjoint pairs.",
        f"A slow row or column blames a node, a single slow cell a link. {_LOCATED} {_UNCALIBRATED}",
    ),
    "fabric.rails": (
        "An all-reduce over each training interface by itself, and the bytes that each carried. Over the "
        "first one all nodes connect before the ranks join: a silent node is named, not waited for.",
        "One that carries nothing, or far less than the others, is FAIL: bandwidth hides one of many. "
        + _UNCALIBRATED,
    ),
    "fabric.loss": (
        "Segments sent again as a share of segments sent, from the kernel's or the adapter's own counters.",
        "Certainly below 0.1 % passes, certainly above 0.2 % is FAIL: 1 % of loss hardly moves bandwidth but "
        "shows in counters. A fifth of the visits may have bursts, as on busy hosts. What the "
        "protocol of an adapter sends again is reported and gates nothing.",
    ),
    "fabric.transport": (
        "Transport of the training traffic, by the library's log and by the interfaces' counters.",
        "Another transport than the fabric's own (a silent TCP fallback) is FAIL, and so are fewer adapters "
        "than the machine type has, a dead one, and lost GPUDirect RDMA.",
    ),
    "training.scaling_efficiency": (
        "T without over T with communication, all ranks computing in both: cost of communication, uneven "
        "ranks cost.",
        "On accelerators PASS when the interval is above what the run's own all-reduce allows with half of "
        "what can overlap, FAIL below both parts one after the other; on CPUs by the plan's minimum (all "
        "checks share a risk of 1e-4). On a host whose CPUs others hold, lost efficiency without a slow rank "
        "is INCONCLUSIVE.",
    ),
    "training.straggler": (
        "Compute time of each rank before any collective, against the median of the others.",
        "FAIL above the tolerated slowdown with the interval above negligible, PASS when all ranks lie "
        "below, else more samples, at last INCONCLUSIVE. Inside the stated zone either is acceptable.",
    ),
    "training.decomposition": (
        "Parts of a step's time: waiting for data, compute, exposed communication, checkpoint, the rest.",
        "The five parts must add up to the step within 2 %, else the record is wrong and the check is ERROR.",
    ),
    "training.overlap": (
        "Share of the communication that overlaps with compute.",
        "Reported; it explains a low scaling efficiency.",
    ),
    "training.weak_scaling": (
        "Classic T(1)/T(N), one rank alone over all ranks.",
        "Reported and never gated: ranks of one machine share caches, memory and clocks.",
    ),
    "training.mfu": (
        "Model FLOPS per second over the declared peak.",
        "Reported where a peak for this data type is declared; without one it is unknown, not guessed.",
    ),
    "training.sharded": (
        "The step with parameters sharded over the ranks.",
        "Losses may differ from those of the unsharded step by rounding only; its time has its own baseline.",
    ),
    "training.loss_parity": (
        "Losses of many ranks and of one rank with the same global batch.",
        "They may differ by rounding only, as the data type, the terms of a sum and the steps allow; more is "
        "FAIL.",
    ),
    "numerics.finite": (
        "NaN and infinity in gradients, counted on every rank before they are reduced.",
        "One is FAIL and names rank, parameter and step: after the reduction it is everywhere.",
    ),
    "numerics.repeatable": (
        "Bits of every rank's own gradients, before any reduction, each time that it does the same work.",
        f"{_EXACT} It names the rank whose arithmetic is wrong. Not on accelerators, which add in any order.",
    ),
    "numerics.gradients": ("Checksums of the reduced gradients on every rank.", _EXACT),
    "storage.write": (
        "MB/s of durable writes (fsync included) of every storage target and node.",
        "Against the declared rate where there is one, and between nodes; disk full is FAIL with its bytes.",
    ),
    "storage.read": (
        "MB/s of reads after the pages were dropped from the cache.",
        "Between nodes and against the declared rate; a cache that could not be dropped is reported.",
    ),
    "loader.utilisation": (
        "Share of its time that an emulated accelerator computed instead of waiting for data.",
        "At least 0.90; below, the evidence says whether reads or processors are too slow.",
    ),
    "checkpoint.commit": (
        "Time until a checkpoint is durable, and time for which training stalls.",
        "Reported against the declared storage rate where there is one.",
    ),
    "checkpoint.torn_refused": (
        "Damaged copies of a real checkpoint are offered for restore.",
        "Accepting one is FAIL: a torn checkpoint loses a training run silently.",
    ),
    "checkpoint.integrity": (
        "Every shard of the run's own checkpoints against its manifest.",
        f"{_EXACT} It names the shard.",
    ),
    "checkpoint.advice": (
        "Interval between checkpoints by Young and Daly, from the measured cost and a stated failure rate.",
        "Advice, never gated.",
    ),
    "resume.equality": (
        "State after kill and restart against an uninterrupted run, entry by entry, and the next losses.",
        f"{_EXACT} A rank whose own gradients were the first to differ is named, not the checkpoint.",
    ),
    "resume.recovery": (
        "Time from the kill of a rank to the first new optimizer step, and the steps that were lost.",
        "More lost steps than one checkpoint interval is FAIL, and so are more than two minutes.",
    ),
    "run.liveness": (
        "Heartbeats of every rank, watched by its launcher from outside.",
        "A rank that is killed, hung or never joins is FAIL and named, with the last thing it did.",
    ),
    "run.completed": (
        "Completeness and readability of all planned evidence.",
        "Anything missing is ERROR: what was not measured never passes.",
    ),
    "baseline.regression": (
        "The figures of this run over those of this stack's accepted runs with the same fingerprint.",
        "Apart from the verdict: regressed is a figure whose whole interval (one-sided 1e-4) is below 0.97. "
        "Figures of shared CPUs and disks are judged once eight accepted runs show how much they vary.",
    ),
}
UNKNOWN = ("This version has no explanation of it.", "See its message.")
