"""How a run goes on a machine type: on how many, for how long, for how much, or why not (pure)."""

import math
from dataclasses import dataclass
from typing import Literal

from trainstack.advice.assumptions import assumed
from trainstack.advice.machines import Machine, Price
from trainstack.advice.memory import Need
from trainstack.advice.question import Question

Way = Literal["one GPU", "DDP", "FSDP"]
_GIB, _GB, _TERA, _HOUR_S = 2**30, 1e9, 1e12, 3600
# All-reduce of 16-bit gradients, or two all-gathers of weights and a reduce-scatter of gradients.
_EXCHANGED_BYTES = {"DDP": 2 * 2.0, "FSDP": 3 * 2.0}


@dataclass(frozen=True)
class Run:
    """A run that fits."""

    machine: Machine
    price: Price
    """Of an hour of one."""
    count: int
    """Machines."""
    way: Way
    """The simplest that fits."""
    gpu_gb: float
    """Needed on each GPU."""
    hours: float

    @property
    def usd(self) -> float:
        """Of all machines, for all hours."""
        return self.hours * self.count * self.price.usd

    @property
    def gpus(self) -> int:
        """All of them."""
        return self.count * self.machine.gpus


@dataclass(frozen=True)
class Lost:
    """A machine type that cannot do it, or of which nobody can say."""

    machine: Machine
    why: str


def run_on(machine: Machine, question: Question, need: Need, price: Price | None) -> Run | Lost:
    """The run on the fewest machines that keep the deadline."""
    has = machine.memory_gib * _GIB / _GB * assumed("usable_share")
    most = max(1, int(assumed("most_gpus")) // machine.gpus)
    if need.on_each(most * machine.gpus) > has:
        wants = f"{need.on_each(most * machine.gpus):,.0f} GB on each of {most * machine.gpus} GPUs"
        return Lost(machine, f"does not fit: {wants}, {has:,.0f} GB of it usable")
    if machine.tflops is None:
        return Lost(machine, "no source says how fast it computes")
    if price is None:
        return Lost(machine, "no price known where you look")
    fastest = math.inf
    for count in range(1, most + 1):
        way = _way(need, count * machine.gpus, has)
        if way is None:
            continue
        unknown = _unknown(machine, count, way)
        if unknown:
            return Lost(machine, _instead(fastest, question, unknown))
        hours = _hours(machine, question, count, way)
        fastest = min(fastest, hours)
        if question.deadline_h is None or hours <= question.deadline_h:
            held = need.on_each(1 if way != "FSDP" else count * machine.gpus)
            return Run(machine, price, count, way, held, hours)
    return Lost(machine, _instead(fastest, question, f"{most * machine.gpus} GPUs are the most"))


def _instead(fastest: float, question: Question, bound: str) -> str:
    if math.isinf(fastest):
        return bound
    return f"takes {fastest:,.1f} h, {question.deadline_h:,.1f} h are allowed, and {bound}"


def _way(need: Need, gpus: int, has: float) -> Way | None:
    if need.on_each(1) <= has:
        return "one GPU" if gpus == 1 else "DDP"
    return "FSDP" if gpus > 1 and need.on_each(gpus) <= has else None


def _unknown(machine: Machine, count: int, way: Way) -> str:
    """Which rate of the exchange no source gives, if the run needs it."""
    if way == "one GPU":
        return ""
    if machine.gpus > 1 and machine.inside_gb_s is None:
        return "how fast its GPUs talk to each other no source says (they share PCIe, or are few of a board)"
    if count > 1 and machine.between_gb_s is None:
        return "several of them have no network with a known rate"
    return ""


def _hours(machine: Machine, question: Question, count: int, way: Way) -> float:
    """Computing and exchange one after the other: what overlaps makes it shorter."""
    assert machine.tflops is not None
    gpus = count * machine.gpus
    tokens = assumed("tokens_per_step")
    flops = assumed("full_flops" if question.method == "full" else "frozen_flops")
    flops += assumed("recomputed_flops")
    computing = flops * question.parameters * tokens / (machine.tflops * _TERA * assumed("peak_share"))
    steps = question.tokens / (tokens * gpus)
    return steps * (computing + _exchange(machine, question, count, way)) / _HOUR_S


def _exchange(machine: Machine, question: Question, count: int, way: Way) -> float:
    """Seconds of one step in which GPUs talk; the slowest link on the way decides."""
    if way == "one GPU":
        return 0.0
    gpus = count * machine.gpus
    rates = [machine.inside_gb_s if machine.gpus > 1 else None, machine.between_gb_s if count > 1 else None]
    slowest = min(rate for rate in rates if rate is not None)
    trained = question.parameters
    if way == "DDP" and question.method != "full":
        trained *= assumed("adapter_share")
    return _EXCHANGED_BYTES[way] * trained * (gpus - 1) / gpus / (slowest * _GB)
