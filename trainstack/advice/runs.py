"""A run on a machine type: machines, duration and cost, or the reason why it does not fit (pure)."""

import math
from dataclasses import dataclass
from typing import Literal

from trainstack.advice.assumptions import assumed
from trainstack.advice.machine import Machine, Price
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
    """Per machine and hour."""
    count: int
    """Number of machines."""
    way: Way
    """The simplest method that fits."""
    gpu_gb: float
    """Needed on each GPU."""
    hours: float

    @property
    def usd(self) -> float:
        """Cost of all machines for all hours."""
        return self.hours * self.count * self.price.usd

    @property
    def gpus(self) -> int:
        """GPUs of all machines."""
        return self.count * self.machine.gpus


@dataclass(frozen=True)
class Lost:
    """A machine type that is unsuitable, or without data."""

    machine: Machine
    why: str


def run_on(machine: Machine, question: Question, need: Need, price: Price | None) -> Run | Lost:
    """The run on the fewest machines that meet the deadline."""
    has = machine.memory_gib * _GIB / _GB * assumed("usable_share")
    most = max(1, int(assumed("most_gpus")) // machine.gpus)
    if need.on_each(most * machine.gpus) > has:
        wants = f"{need.on_each(most * machine.gpus):,.0f} GB on each of {most * machine.gpus} GPUs"
        return Lost(machine, f"does not fit: {wants}, {has:,.0f} GB of it usable")
    if machine.tflops is None:
        return Lost(machine, "its compute rate is unknown")
    if price is None:
        return Lost(machine, _unpriced(machine, question))
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


def _unpriced(machine: Machine, question: Question) -> str:
    if machine.ways is None or set(question.markets) & set(machine.ways):
        return "no price is known for the region"
    return f"not sold {' or '.join(question.markets)}, only {', '.join(machine.ways)}".replace("_", " ")


def _instead(fastest: float, question: Question, bound: str) -> str:
    if math.isinf(fastest):
        return bound
    return f"takes {fastest:,.1f} h, {question.deadline_h:,.1f} h are allowed, and {bound}"


def _way(need: Need, gpus: int, has: float) -> Way | None:
    if need.on_each(1) <= has:
        return "one GPU" if gpus == 1 else "DDP"
    return "FSDP" if gpus > 1 and need.on_each(gpus) <= has else None


def _unknown(machine: Machine, count: int, way: Way) -> str:
    """The unknown rate that the run would need; empty without any."""
    if way == "one GPU":
        return ""
    if machine.gpus > 1 and machine.inside_gb_s is None:
        return "the bandwidth between its GPUs is unknown (shared PCIe, or part of a board)"
    if count > 1 and machine.between_gb_s is None:
        return "the network rate between such machines is unknown"
    return ""


def _hours(machine: Machine, question: Question, count: int, way: Way) -> float:
    """The sum of computing and exchange, as without overlap."""
    assert machine.tflops is not None
    gpus = count * machine.gpus
    tokens = assumed("tokens_per_step")
    flops = assumed("full_flops" if question.method == "full" else "frozen_flops")
    flops += assumed("recomputed_flops")
    computing = flops * question.parameters * tokens / (machine.tflops * _TERA * assumed("peak_share"))
    steps = question.tokens / (tokens * gpus)
    return steps * (computing + _exchange(machine, question, count, way)) / _HOUR_S


def _exchange(machine: Machine, question: Question, count: int, way: Way) -> float:
    """Seconds of communication of one step, at the rate of the slowest link."""
    if way == "one GPU":
        return 0.0
    gpus = count * machine.gpus
    rates = [machine.inside_gb_s if machine.gpus > 1 else None, machine.between_gb_s if count > 1 else None]
    slowest = min(rate for rate in rates if rate is not None)
    trained = question.parameters
    if way == "DDP" and question.method != "full":
        trained *= assumed("adapter_share")
    return _EXCHANGED_BYTES[way] * trained * (gpus - 1) / gpus / (slowest * _GB)
