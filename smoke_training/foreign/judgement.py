"""Judge tests of nccl-tests size by size, by the references of our own runs (pure).

A size is judged where `expected/` has a reference for it. The others can only be held against each other.
"""

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from smoke_training.expected import lookup
from smoke_training.expected.lookup import NoFigure
from smoke_training.expected.reference import FAULT_SHARE, JUDGED_FROM, RunSetting
from smoke_training.expected.tables import shipped
from smoke_training.fabric import Fabric
from smoke_training.foreign.nccl_tests import Reading, Row, Test
from smoke_training.formulae.bandwidth import ALL_TO_ALL, COLLECTIVES, bus_factor
from smoke_training.formulae.bounds import ClusterShape
from smoke_training.judges.network.collectives import of_means
from smoke_training.model import WORST_FIRST, Cause, Check, Culprit, Expected, Judgement, Verdict, counted
from smoke_training.plan import local_plan
from smoke_training.reader import DocumentError
from smoke_training.record.formatting import size as bytes_text
from smoke_training.verdict import overall

TYPES = ("float", "bfloat16", "half")  # others reduce slower; published references are of float
DISTURBED = 1.5  # times as long as a larger message: all readings of a size, against all of the larger
ROUNDED = 1e-3  # a size is rounded down to whole elements of every rank
FAR = 0.25  # of what the wires carry: no healthy test without a reference is as slow
DECISIVE = 1.0  # GB/s of algbw: from here on two decimals distinguish numbers of ranks
_NVIDIA = re.compile(r"NVIDIA|Tesla|GeForce|Quadro|TITAN|Graphics Device|\bG?[VAHBL]\d{2,3}\b")
_SHARED = ("scatter", "gather", "scatter or gather")  # (n-1)/n, as an all-gather
_OF_ALL = ("broadcast", "reduce")  # rings through every GPU: all wires of a node carry one root's data
_PLAIN = ("broadcast", "reduce", "sendrecv")  # busbw is algbw


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Machines and network as claimed by the person who judges; None is unknown."""

    machine: str | None
    nodes: int | None
    fabric: Fabric | None = None

    @property
    def network(self) -> Fabric:
        """The network between the nodes: the claimed one, else what NCCL uses by default on such machines.

        That is NVLink where a rack has it, else the first of the machine type's row.
        """
        known = [name for row in lookup.rows_of(shipped(), self.machine or "") for name in row.fabrics]
        if self.fabric is not None or not known:
            return self.fabric or Fabric.TCP
        return Fabric.NVLINK if Fabric.NVLINK in known else known[0]

    @property
    def model(self) -> str | None:
        """Model of the GPUs, as H100; None for an unknown machine type."""
        return next((row.gpu for row in lookup.rows_of(shipped(), self.machine or "")), None)

    @property
    def gpus(self) -> int | None:
        """GPUs of a node."""
        return next((row.gpus for row in lookup.rows_of(shipped(), self.machine or "")), None)

    @property
    def unknown(self) -> str:
        """The reason why nothing is known of the machine type, for the end of a message; else empty."""
        machine = lookup.find_machine(shipped(), self.machine or "", self.network)
        return f" (--machine: {machine.reason})" if self.machine and isinstance(machine, NoFigure) else ""


def judge(tests: Sequence[Test], claim: Claim) -> Judgement:
    """Return a check per sweep, and those of its rows. DocumentError names what cannot be judged."""
    if problems := [problem for test in tests for problem in _problems(test, claim)]:
        raise DocumentError(problems)
    settings = [_setting(test, claim) for test in tests]
    found = [
        ((setting.shape, {host for _, host, *_ in test.ranks}), check)
        for test, setting in zip(tests, settings, strict=True) for check in _checks(test, setting, claim)
    ]  # fmt: skip
    # What has a reference judges its own nodes; the rest of what ran on them is reported.
    known = [nodes for nodes, check in found if check.zone]
    checks = [
        replace(check, required=False) if nodes in known and check.expected and not check.zone else check
        for nodes, check in found
    ]
    notes = tuple(_notes(tests, settings, claim))
    return Judgement(verdict=overall(checks), checks=tuple(checks), notes=notes)


def _problems(test: Test, claim: Claim) -> Iterator[str]:
    """Yield why a test is no measurement of one world of these machines."""
    where = f"line {test.first.line}, {test.collective}"
    named = Counter(rank for rank, *_ in test.ranks)
    twice = [rank for rank, count in named.items() if count > 1]
    rows = [row for row in test.all if _decisive(row)]
    large = [reading for row in rows for reading in row.readings if reading.algbw >= DECISIVE]
    nodes, model = _nodes(test), claim.model or ""  # before its release a GPU has no name of its own
    own = [name for *_, name in test.ranks if "Graphics Device" in name or lookup.is_model(name, model)]
    if alien := [device for *_, device in test.ranks if not _NVIDIA.search(device)]:
        yield f"{where}: {alien[0]!r}: no device of NVIDIA; the references are of NCCL"
    elif claim.model and test.ranks and not own:
        yield f"{where}: {test.ranks[0][3]!r}; --machine {claim.machine} has {model}, no NVL, PCIe or MIG"
    elif twice:
        yield f"{where}: rank {twice[0]} is listed {named[twice[0]]} times: several worlds in one output"
    elif 1 in (_listed(test), max(test.nranks, default=2)) or (large and not any(r.busbw for r in large)):
        yield f"{where}: one rank to a world (busbw 0): nothing was communicated; build with MPI=1"
    elif test.disordered:
        yield f"{where}: sizes repeat out of order: several worlds print into each other"
    elif test.cpu_time:
        yield f"{where}: times of the CPU (-C 1) are no bandwidth; run without -C"
    elif nodes and claim.nodes and nodes != claim.nodes:
        given = f"--nodes is {claim.nodes}; judge it with {nodes}"
        yield f"{where}: ranks run on {counted(nodes, 'node')}, {given}"
    elif (ranks := _ranks(test, claim)) is None or (
        rows and not any(_fits(r, test.collective, ranks) for r in rows)
    ):
        ratio = large[-1].busbw / large[-1].algbw if large else 0.0
        known = f" on {counted(number, 'node')}" if (number := nodes or claim.nodes) else ""
        other = f"not of {counted(ranks, 'rank')}{known}" if ranks else f"of no number of ranks{known}"
        rule = "state --nodes of this run; with fewer GPUs a node, keep the lines that name the ranks"
        rule = rule if claim.nodes or ranks else "judge an output as it was printed"
        yield f"{where}: busbw is {ratio:.3f} of algbw, which is {other}; {rule}{claim.unknown}"
    elif not (nodes or claim.nodes or claim.gpus):
        yield f"{where}: no line names the ranks; give --nodes, or a known --machine{claim.unknown}"


def _nodes(test: Test) -> int | None:
    """Nodes by the names of hosts; None without all ranks, or where host names are not unique."""
    devices = Counter((host, device) for _, host, device, _ in test.ranks if device is not None)
    hosts = {host for _, host, *_ in test.ranks}
    return len(hosts) if _listed(test) and max(devices.values(), default=1) == 1 else None


def _listed(test: Test) -> int:
    """Number of ranks, where every one has a line; else 0."""
    numbers = {rank for rank, *_ in test.ranks}
    return len(numbers) if numbers == set(range(len(numbers))) else 0


def _ranks(test: Test, claim: Claim) -> int | None:
    """Ranks by the lines of a test, else as claimed, else the least number that its bus factor allows."""
    known = _listed(test) or max(test.nranks, default=0) or (claim.nodes or 0) * (claim.gpus or 0)
    step, rows = claim.nodes or claim.gpus or 1, [r for r in test.all if _decisive(r)] or test.all
    guesses = (n for each in (8, 4, 1) for n in range(max(2, each * step), 4096, each * step))
    return known or next(
        (n for n in guesses if sum(_fits(row, test.collective, n) for row in rows) * 2 > len(rows)), None
    )


def _decisive(row: Row) -> bool:
    return any(reading.algbw >= DECISIVE for reading in row.readings)


def _setting(test: Test, claim: Claim) -> RunSetting:
    ranks = _ranks(test, claim) or 1
    nodes = _nodes(test) or claim.nodes or max(1, ranks // (claim.gpus or ranks))
    counts = Counter(host for _, host, *_ in test.ranks) if _listed(test) else Counter[str]()
    even = len(set(counts.values())) <= 1 and ranks % nodes == 0
    shape = ClusterShape(nodes, ranks // nodes) if even else None
    return RunSetting(ranks=ranks, shape=shape, backend="nccl")


def _fits(row: Row, name: str, ranks: int) -> bool:
    """Report whether time, algbw and busbw of a row agree, for so many ranks, as far as they are printed."""
    return all(_agrees(reading, row.size, name, ranks) for reading in row.readings)


def _agrees(reading: Reading, size: int, name: str, ranks: int) -> bool:
    known = {**dict.fromkeys(_PLAIN, 1.0), **dict.fromkeys(_SHARED, 1 - 1 / ranks)}
    wanted = bus_factor(name, ranks) if name in COLLECTIVES else known.get(name)
    if reading.algbw < DECISIVE or wanted is None or not 0 < reading.time_us < math.inf:
        return 0 < reading.time_us < math.inf
    rate, (low, high) = size / reading.time_us / 1e3, reading.factor
    return abs(rate / reading.algbw - 1) < 0.03 and low <= wanted <= high


def _checks(test: Test, setting: RunSetting, claim: Claim) -> Iterator[Check]:
    if test.failure:
        text = f"a test ended with an error: {test.failure}"
        yield Check(id="run.completed", status=Verdict.ERROR, message=text, next_action="Repeat it.")
    elif test.cut or test.lost:
        largest = bytes_text(max(row.size for row in test.all))
        text = test.lost or f"no total at the end, and the last whole row is of {largest}"
        text += ": a test hung, or the file is cut"
        action = "Give the whole output; if there is no more of it, find out which ranks hung."
        yield Check(id="run.completed", status=Verdict.INCONCLUSIVE, message=text, next_action=action)
    yield from _devices(test)
    yield from _payload(test)
    if odd := [row for row in test.all if not _fits(row, test.collective, setting.ranks)]:
        yield _odd(odd, setting)
    sweeps: dict[tuple[str, str, int], dict[int, list[float]]] = {}
    for row in sorted(test.all, key=lambda row: row.size):
        if row not in odd:
            times = sweeps.setdefault(row.key[:3], {}).setdefault(row.size, [])
            times += [reading.time_us / 1e6 for reading in row.readings]
    for (kind, *_), found in sweeps.items():
        yield _sweep(claim, setting, (test.collective, kind), found)
        yield from _against_itself(test.collective, found)


def _devices(test: Test) -> Iterator[Check]:
    """Yield a FAIL where ranks have different devices; the fewer ones are accused."""
    counts = Counter(device for *_, device in test.ranks)
    usual = max(counts, key=lambda device: counts[device], default="")
    if others := {host: device for _, host, _, device in test.ranks if device != usual}:
        text = f"device differs between ranks: {', '.join(sorted(counts))}"
        accused = tuple(
            Culprit("node", host, Cause.MISMATCH, (f"{device}, most have {usual}",))
            for host, device in others.items()
        )
        action = "Give every node the same machine type."
        faulty = Check(id="preflight.world", status=Verdict.FAIL, message=text, next_action=action)
        yield replace(faulty, culprits=accused)


def _payload(test: Test) -> Iterator[Check]:
    """Yield a FAIL for wrong elements. `error` of older versions is a relative difference: 1 is as wrong.

    nccl-tests does not count those of an all-to-all in place, which NCCL does not support (`alltoall.cu`).
    """
    most = 1 if test.collective == ALL_TO_ALL else 2
    read = [(row, reading.wrong or 0.0) for row in test.all for reading in row.readings[:most]]
    bad = [(row, wrong) for row, wrong in read if wrong >= 1 or math.isnan(wrong)]
    if bad or test.out_of_bounds:
        found = [f"line {row.line}: {count:g} wrong elements of {bytes_text(row.size)}" for row, count in bad]
        text = f"{(*found, 'Out of bounds values')[0]}; {len(bad) or test.out_of_bounds} such results"
        accused = Culprit("stack", "payload", Cause.CORRUPTION, (text,))
        action = "Find the GPU or link: repeat the test within each node, then over pairs of nodes."
        name = "collective.payload"
        yield Check(id=name, status=Verdict.FAIL, message=text, culprits=(accused,), next_action=action)


def _odd(rows: list[Row], setting: RunSetting) -> Check:
    """Rows of other numbers of whole nodes are of other runs; any other contradiction leaves doubt."""
    step = setting.shape.per_node if setting.shape else 1
    sizes = range(max(step, 2), 64 * step, step)
    whole = [any(_fits(row, COLLECTIVES[row.redop == "none"], n) for n in sizes) for row in rows]
    shown = "; ".join(
        f"line {row.line}: {bytes_text(row.size)}, time {row.readings[0].time_us:g} us, "
        f"algbw {row.readings[0].algbw:g}, busbw {row.readings[0].busbw:g}" for row in rows[:5]
    )  # fmt: skip
    text = f"{len(rows)} rows contradict {setting.ranks} ranks and are not judged: {shown}"
    action = "Judge the output of one run, as it was printed."
    doubt = not (step > 1 and all(whole))
    return Check(id="rows", status=Verdict.INCONCLUSIVE, required=doubt, message=text, next_action=action)


def _sweep(claim: Claim, setting: RunSetting, what: tuple[str, str], times: dict[int, list[float]]) -> Check:
    """Judge every size that has a reference; the worst one stands for the sweep, and all are listed."""
    (name, kind), shape = what, setting.shape or ClusterShape(claim.nodes or 1, 1)
    machine, largest = lookup.find_machine(shipped(), claim.machine or "", claim.network), max(times)
    wire = 0.0 if isinstance(machine, NoFigure) else (machine.network_gbit_s or 0.0) / 8 / machine.gpus
    wire *= shape.per_node if name in _OF_ALL and shape.nodes > 1 else 1
    rate = largest / statistics.median(times[largest]) / 1e9
    far = largest >= JUDGED_FROM and rate < FAR * wire  # then the verdict stays open
    shown = f"{rate:.1f} GB/s algbw at {bytes_text(largest)}" + far * f", its wires carry {wire:g}"
    if name not in COLLECTIVES or kind not in TYPES:
        known = ", ".join((*COLLECTIVES, *TYPES))
        text = f"{name} of {kind}: {shown}; no_reference; there are some of {known}"
        unknown = None if far else Expected.unknown(text, source="none")
        return Check(id=f"collective.{name}", status=Verdict.INCONCLUSIVE, message=text, expected=unknown)
    plan = replace(
        local_plan(shape.per_node), nodes=shape.nodes, instance_type=claim.machine or "(not named)",
        fabric=claim.network, gpus_per_node=shape.per_node,
    )  # fmt: skip
    found = {size: of_means(plan, setting, name, _nominal(size), seconds) for size, seconds in times.items()}
    judged = {size: check for size, check in found.items() if check.zone}
    worst = min(judged.values(), key=lambda c: (WORST_FIRST.index(c.status), _share(c)), default=None)
    if worst is None:
        last = replace(found[largest], id=f"collective.{name}")
        return replace(last, message=f"{last.message}; {shown}", expected=None if far else last.expected)
    listed = ", ".join(
        f"{bytes_text(size)} {c.measured.value:.1f} {c.status}"
        for size, c in judged.items() if c.measured and c.measured.value
    )  # fmt: skip
    text = f"{worst.message}; {len(judged)} of {len(found)} sizes have a reference: {listed}"
    return replace(worst, id=f"collective.{name}", message=text)


def _nominal(size: int) -> int:
    """The power of two of which a size was rounded down to equal parts; else the size."""
    power = 1 << (size - 1).bit_length()
    return power if power * (1 - ROUNDED) <= size else size


def _share(check: Check) -> float:
    rate = check.measured.value if check.measured else None
    return (rate or 0.0) / (check.zone[1] if check.zone else 1.0)


def _against_itself(name: str, times: dict[int, list[float]]) -> Iterator[Check]:
    """Hold a sweep against itself: a larger message is not faster, and its rate does not collapse.

    FAIL where the rates of the largest sizes, at least two, are below FAULT_SHARE of a smaller one's.
    """
    sizes = sorted(times)
    longest = {size: min((max(times[more]) for more in sizes if more > size), default=0.0) for size in sizes}
    slow = [size for size in sizes if longest[size] and min(times[size]) > DISTURBED * longest[size]]
    rates = {size: (size / max(times[size]), size / min(times[size])) for size in sizes}
    peak = max(sizes, key=lambda size: rates[size][0])
    below = [size for size in sizes if size > peak and rates[size][1] < FAULT_SHARE * rates[peak][0]]
    if len(below) > 1 and below[-1] == sizes[-1] >= JUDGED_FROM:
        share = statistics.median(rates[sizes[-1]]) / rates[peak][0]
        text = f"from {bytes_text(below[0])} on the rate falls, to {share:.0%} of that of {bytes_text(peak)}"
        accused = Culprit("stack", "fabric", Cause.UNKNOWN, (text,), score=share)
        action = "Compare with other settings of the network (adaptive routing, flow control), then by pairs."
        faulty = Check(id=f"sweep.{name}", status=Verdict.FAIL, message=text, next_action=action)
        yield replace(faulty, culprits=(accused,))
    elif slow:
        span = f"from {bytes_text(slow[0])} to {bytes_text(slow[-1])}"
        text = f"{len(slow)} sizes {span} took longer than larger ones"
        action = "Run it again on idle machines; if the same sizes are slow, look at NCCL's algorithm."
        yield Check(id=f"sweep.{name}", status=Verdict.INCONCLUSIVE, message=text, next_action=action)


def _notes(tests: Sequence[Test], settings: Sequence[RunSetting], claim: Claim) -> Iterator[str]:
    """Yield how sure the verdict is, and what the output cannot show."""
    notes: dict[str, None] = {}  # of every test, once
    for test, setting in zip(tests, settings, strict=True):
        each = f"means of {test.iterations} iterations" if test.iterations else "means"
        swept = f"One run of {counted(test.cycles, 'cycle')} (sweeps over all sizes), {each}"
        given = "by --nodes and the bus factor" if claim.nodes else "inferred from the bus factor"
        given = "by its own lines" if _listed(test) or test.nranks else given
        where = counted(setting.shape.nodes, "node") if setting.shape else "uneven nodes"
        notes[f"{swept}. Spread between runs: unknown (between sources: to 24 %)."] = None
        notes[f"{counted(setting.ranks, 'rank')} on {where}, {given}; {claim.network} is assumed."] = None
    yield from notes
    yield "An indifference zone: below it FAIL, from its end on PASS, within it nothing is claimed."
    if claim.unknown:
        yield f"Judged without references of the machine{claim.unknown}."
    yield "Not in such an output: machine type, transport of the bytes, clocks, other load, errors of links."
    if not any(r.wrong is not None for t in tests for row in t.all for r in row.readings):
        yield "The results were not verified (N/A)."
    if damaged := sum(t.damaged for t in tests):
        yield f"{damaged} rows are cut or interleaved with other lines and were not read."
    if any(t.average is None and not t.cut for t in tests):
        yield "No total at the end: the output may be cut; sizes that are missing were not judged."
