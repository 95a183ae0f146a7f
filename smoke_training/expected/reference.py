"""Choose the reference of a collective, and its certainty (pure).

In this order: the plan's own figure; the lowest of the table's figures for exactly this machine type, fabric,
collective, shape and size; on gloo the rate that the plan declares for its wire; the bound of the wires times
an efficiency that comparable fabrics reach (provisional); nothing, with a reason.

Healthy stacks of one kind differ by their versions and from run to run, so a figure is no sharp limit: down
to PASS_SHARE of it nothing is wrong, below FAULT_SHARE a fault is proven, and between the two the stack's own
accepted runs decide (`judges/run/baseline.py`), which differ little.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from smoke_training.expected import lookup
from smoke_training.expected.lookup import FigureQuery, NoFigure
from smoke_training.expected.tables import FigureTables
from smoke_training.fabric import Fabric
from smoke_training.formulae.bandwidth import ALL_REDUCE
from smoke_training.formulae.bounds import (
    NETWORK,
    RING,
    TREE,
    BandwidthBound,
    ClusterShape,
    Wires,
    bounds,
    highest,
    lowest,
)
from smoke_training.model import PLAN, Expected, Verdict
from smoke_training.nccl.tuning import BOUND_OF
from smoke_training.plan import Plan
from smoke_training.statistics.baseline import Acceptance

# Shares of the lowest figure of its kind. Azure warns below 400 of 450 GB/s (0.89) and drains a node below
# 300 (0.67); the other floors that are shipped lie at 0.55 to 0.79 (`floor` in figures.toml). Several sources
# of one cell differ by at most 0.77 (8 nodes of H100, 1 GiB, default settings and tuned ones).
PASS_SHARE = 0.90
FAULT_SHARE = 2 / 3
JUDGED_FROM = 256 << 20  # bytes: below it published figures differ by versions more than by health
DERIVED_FROM = 64 << 20  # bytes for each rank: from here on the fabrics with figures are near their bounds
# Lowest share of the lowest bound that a published figure of so many bytes reaches, rounded down: 0.83 (p5
# all-to-all) to 1.69 over these fabrics. TCPX reaches 0.66, sockets depend on the machine: no efficiency is
# known for them.
EFFICIENCY = 0.80
# The same of rings in messages of 16 MiB to DERIVED_FROM a rank: 0.74 (p5, 8 nodes, 1 GiB) and more.
RING_EARLY = 0.70
EFFICIENT_FABRICS = frozenset({Fabric.EFA, Fabric.INFINIBAND, Fabric.RDMA, Fabric.TCPXO})
# NVLS and NVLSTree, the reduction inside NVSwitch, carry all-reduces of one and two nodes of 8 GPUs there
# (NVIDIA/nccl-tests#319, #309; stas00/ml-engineering@744d01e network/README.md: from 5 or 6 GPUs on). Over
# more nodes a ring is as fast. Google's profiles of GPUDirect-TCPX and -TCPXO switch it off.
SWITCHED_NODES, SWITCHED_GPUS = 2, 8
SWITCHED_FABRICS = frozenset({Fabric.EFA, Fabric.INFINIBAND, Fabric.RDMA})
# gloo's all-reduce over TCP on a shaped wire: frames carry 1448 of 1514 bytes, and ring steps start late.
# Measured 0.94 of the bound at 0.1 Gb/s on 2 and 4 nodes (torch 2.13.0, veth with token buckets).
TCP_EFFICIENCY = 0.90
# Of the bound: a wire at half its rate reads 0.47, the least that two busy cores made of a whole one 0.51
# (and then the ranks waited for CPUs, which is measured too). Between this and the floor nothing is decided.
TCP_FAULT = 0.60
# The one collective of gloo that fills a wire. Its all-gather reached 0.60 to 0.91 of the bound there, its
# all-to-all 0.48 to 0.63, because both send whole blocks at once, in both directions of every connection; its
# reduce-scatter is an all-reduce with a copy on top (0.90), which adds no information about the wire.
GLOO_FILLS = frozenset({ALL_REDUCE})
# Above this declared rate gloo's CPU threads may be the limit, not the wire.
CPU_FILLS_GBIT_S = 2.0


@dataclass(frozen=True, kw_only=True)
class RunSetting:
    """The ranks of a run, their shape (None where nodes hold different numbers of them) and backend."""

    ranks: int
    shape: ClusterShape | None
    backend: str
    tuned: bool | None = False  # its environment asks for more channels than NCCL's default; None: unknown


@dataclass(frozen=True, kw_only=True)
class CollectiveReference:
    """The judged size and its reference values.

    Above `expected.floor` is a pass. `fail_below` is where a fault begins; None: nothing here can prove one.
    `bounds` are those of the wires; `declared`: the highest of them is the plan's own claim.
    """

    size: int
    expected: Expected
    fail_below: float | None = None
    bounds: tuple[BandwidthBound, ...] = ()
    declared: bool = False

    def compared(self, low: float, high: float) -> Verdict:
        """PASS: even `low` (GB/s) reaches the floor; FAIL: even `high` lies below the fault's line."""
        if self.expected.floor is not None and low >= self.expected.floor:
            return Verdict.PASS
        proven = self.fail_below is not None and high < self.fail_below
        return Verdict.FAIL if proven else Verdict.INCONCLUSIVE

    @property
    def ceiling(self) -> float | None:
        """The highest bound, GB/s; None where no wire is known."""
        bound = highest(self.bounds)
        return None if bound is None else bound.value


def setting_of(nodes: Sequence[int], backend: str) -> RunSetting:
    """From the node of every rank."""
    counts = {nodes.count(node) for node in nodes}
    shape = ClusterShape(len(set(nodes)), counts.pop()) if len(counts) == 1 else None
    return RunSetting(ranks=len(nodes), shape=shape, backend=backend)


def reference(
    tables: FigureTables,
    plan: Plan,
    setting: RunSetting,
    sweep: tuple[str, Sequence[int]],
    algorithms: Mapping[int, str],
) -> CollectiveReference:
    """Choose the reference of a sweep (collective, sizes); `algorithms` are NCCL's, where known, by size."""
    name, sizes = sweep
    reasons: list[str] = []
    shape, limits = setting.shape, wire_bounds(tables, plan, setting, name)
    size = _of_plan(plan, setting, name, sizes, reasons)
    if size is not None and plan.expected_busbw_gb_s is not None:
        figure = plan.expected_busbw_gb_s
        return _firm(size, figure.value, figure.kind, figure.source, limits)
    if shape is None:
        reasons.append("the nodes hold different numbers of ranks")
    elif setting.backend == "gloo":
        found = _declared(plan, shape, limits, (name, max(sizes)), reasons)
        if found is not None:
            return found
    else:
        for size in sorted(sizes, reverse=True):
            if size >= JUDGED_FROM:
                collnet = algorithms.get(size, "").startswith("collnet")
                question = _question(plan, shape, name, size)
                question = replace(question, collnet=collnet, tuned=setting.tuned)
                cell = lookup.look_up(tables, question)
                if not isinstance(cell, NoFigure):
                    # Limits are shares of the lowest figure; the expected value is the typical one.
                    found = _firm(size, cell.lowest.value, cell.lowest.kind, cell.source, limits)
                    floor = PASS_SHARE * cell.passing.value
                    found = replace(found, expected=replace(found.expected, value=cell.typical, floor=floor))
                    ring = ring_instead(tables, plan, setting, name, algorithms.get(size))
                    if ring is not None:  # a rate that a healthy ring makes proves no fault
                        share = EFFICIENCY if size >= DERIVED_FROM * shape.ranks else RING_EARLY
                        line = min(found.fail_below or 0.0, share * ring.value)
                        found = replace(found, fail_below=line)
                    return found
        largest = lookup.look_up(tables, _question(plan, shape, name, max(sizes)))
        early = f"the sweep ends at {max(sizes)} bytes; figures are only trusted from {JUDGED_FROM} on"
        reasons.append(largest.reason if isinstance(largest, NoFigure) else early)
        if max(sizes) < DERIVED_FROM * shape.ranks:
            reasons.append(f"{max(sizes)} bytes are too few for {shape.ranks} ranks to come near a bound")
        else:
            largest_choice = BOUND_OF.get(algorithms.get(max(sizes), ""))
            switched = expects_switch(tables, plan, setting, name)
            found = _derived(plan, limits, max(sizes), TREE if switched else largest_choice, reasons)
            if found is not None:
                return found
    expected = Expected.unknown("; ".join(reasons), source="none")
    return CollectiveReference(size=max(sizes), expected=expected, bounds=limits)


def expects_switch(tables: FigureTables, plan: Plan, setting: RunSetting, name: str) -> bool:
    """Report whether a healthy all-reduce of this setting is reduced inside NVSwitch (NVLS, NVLSTree)."""
    machine, shape = lookup.find_machine(tables, plan.instance_type, plan.fabric), setting.shape
    if isinstance(machine, NoFigure) or machine.inside is None or machine.inside.switch_gb_s is None:
        return False
    fits = shape is not None and shape.nodes <= SWITCHED_NODES and shape.per_node >= SWITCHED_GPUS
    return fits and name == ALL_REDUCE and setting.backend == "nccl" and plan.fabric in SWITCHED_FABRICS


def ring_instead(
    tables: FigureTables, plan: Plan, setting: RunSetting, name: str, algorithm: str | None
) -> BandwidthBound | None:
    """Return the bound of a ring where a healthy run may use one in place of NVLS or a tree, else None.

    NVIDIA recommends NCCL_ALGO=Ring for two nodes, which trees favour (NVIDIA/nccl-tests#309, #290). It may
    be in use unless NCCL named another algorithm.
    """
    if BOUND_OF.get(algorithm or RING) != RING or not expects_switch(tables, plan, setting, name):
        return None
    return next(
        (bound for bound in wire_bounds(tables, plan, setting, name) if bound.algorithm == RING), None
    )


def wire_bounds(
    tables: FigureTables, plan: Plan, setting: RunSetting, name: str
) -> tuple[BandwidthBound, ...]:
    """Return the bounds of a collective on this run's wires; none where the wires are unknown.

    Some of a node's GPUs only use the wires near them (NVIDIA/nccl-tests#290, #232): those are unknown.
    """
    if setting.shape is None:
        return ()
    if setting.backend == "gloo":
        rate = declared_gbit_s(plan)
        wires = Wires(network=None if rate is None else rate / 8)
        found = bounds(name, setting.shape, wires, "gloo")
        return tuple(bound for bound in found if bound.limit == NETWORK)
    machine = lookup.find_machine(tables, plan.instance_type, plan.fabric)
    if setting.shape.per_node < (plan.gpus_per_node if isinstance(machine, NoFigure) else machine.gpus):
        return ()
    wires = Wires(network=None) if isinstance(machine, NoFigure) else lookup.wires(machine)
    if plan.network_gbit_s is not None:
        wires = Wires(network=plan.network_gbit_s / 8, ring=wires.ring, switch=wires.switch)
    return bounds(name, setting.shape, wires, setting.backend)


def declared_gbit_s(plan: Plan) -> float | None:
    """The rate of the wire that gloo uses: one rail, or all of the network where there is only one rail.

    None on a plan for accelerators: its rates are those of the accelerators' transport.
    """
    if plan.gpus_per_node:
        return None
    if plan.rail_gbit_s is not None:
        return plan.rail_gbit_s
    return plan.network_gbit_s if len(plan.rails) <= 1 else None


def _question(plan: Plan, shape: ClusterShape, name: str, size: int) -> FigureQuery:
    return FigureQuery(
        instance_type=plan.instance_type, fabric=plan.fabric, collective=name, shape=shape, size_bytes=size
    )


def _of_plan(
    plan: Plan, setting: RunSetting, name: str, sizes: Sequence[int], reasons: list[str]
) -> int | None:
    """Return the size of the plan's own figure, None with a reason where it does not apply."""
    wanted = plan.expected_busbw_gb_s
    if wanted is None or name != ALL_REDUCE:
        return None
    if setting.backend != "nccl":
        reasons.append(f"the plan's figure is for nccl on accelerators, this run used {setting.backend}")
    elif wanted.nodes != plan.nodes:
        reasons.append(f"the plan's figure is for {wanted.nodes} nodes, this run has {plan.nodes}")
    elif wanted.size_bytes not in sizes:
        reasons.append(f"the plan's figure is for {wanted.size_bytes} bytes, which this sweep did not reach")
    else:
        return wanted.size_bytes
    return None


def _firm(
    size: int, value: float, kind: str, source: str, limits: tuple[BandwidthBound, ...]
) -> CollectiveReference:
    expected = Expected(value=value, kind=kind, source=source, floor=PASS_SHARE * value)
    return CollectiveReference(size=size, expected=expected, fail_below=FAULT_SHARE * value, bounds=limits)


def accepted_instead(
    found: CollectiveReference, name: str, accepted: Acceptance | None
) -> CollectiveReference:
    """Return the figure of the run that a user accepted, where nothing else is known of a collective."""
    value = None if accepted is None else accepted.figures.get(f"collective.{name}")
    if accepted is None or value is None or found.expected.floor is not None:
        return found
    return _firm(found.size, value, "baseline", accepted.text, found.bounds)


def _declared(
    plan: Plan,
    shape: ClusterShape,
    limits: tuple[BandwidthBound, ...],
    largest: tuple[str, int],
    reasons: list[str],
) -> CollectiveReference | None:
    """Gloo over a wire of declared rate; `largest` is (collective, size)."""
    rate, bound, (name, size) = declared_gbit_s(plan), lowest(limits), largest
    if shape.nodes == 1:
        reasons.append("the ranks of one node exchange data in its memory; no wire limits them")
        return None
    if rate is None or bound is None:
        reasons.append(f"fabric {plan.fabric}: the plan declares no rate of a wire that gloo would use")
        return None
    if name not in GLOO_FILLS:
        reasons.append(f"gloo's {name} does not fill a wire; its bound is {bound.value:.4f} GB/s")
        return None
    value = bound.value * TCP_EFFICIENCY
    firm = rate <= CPU_FILLS_GBIT_S
    expected = Expected(
        value=value,
        kind="declared" if firm else "derived",
        source=f"{PLAN}: {rate:g} Gb/s a node, {TCP_EFFICIENCY:g} of its {bound.algorithm} bound by TCP",
        floor=PASS_SHARE * value,
        reason=None if firm else f"provisional: above {CPU_FILLS_GBIT_S:g} Gb/s the CPUs may be the limit",
    )
    below = TCP_FAULT * bound.value if firm else None
    return CollectiveReference(size=size, expected=expected, fail_below=below, bounds=limits, declared=True)


def _derived(
    plan: Plan, limits: tuple[BandwidthBound, ...], size: int, algorithm: str | None, reasons: list[str]
) -> CollectiveReference | None:
    """A fully known bound, for a fabric with published comparables."""
    bound = lowest(limits, algorithm)
    if bound is None or not bound.complete:
        reasons.append("no bound either: not every wire that these GPUs use is known")
    elif plan.fabric not in EFFICIENT_FABRICS:
        reasons.append(f"no efficiency is known for {plan.fabric}; the bound is {bound.value:.1f} GB/s")
    else:
        source = f"{EFFICIENCY:g} of the {bound.algorithm} bound {bound.value:.1f} GB/s of {bound.limit}"
        # No share of it passes: every published figure reaches it, and three of four wires do not.
        value, why = EFFICIENCY * bound.value, "provisional: " + "; ".join(reasons)
        expected = Expected(value=value, kind="derived", source=source, floor=value, reason=why)
        # The log's choice may be the fault: it raises what passes, and a fault is proven below any choice.
        below = FAULT_SHARE * EFFICIENCY * min(limit.value for limit in limits)
        return CollectiveReference(size=size, expected=expected, fail_below=below, bounds=limits)
    return None
