"""The fault classes that the smoke test promises to find, each with a laboratory run that contains it.

A case is one run: its cluster, its plan's phases, its injectors, and what a right answer looks like. The seed
picks the victim, so that no detector can be right by always accusing the same one.
"""

import contextlib
import random
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.faults.ebpf_loss import LargeFrames, Loss
from tests.faults.fallback import Fallback
from tests.faults.injector import Injector, InjectorError
from tests.faults.lab import Lab
from tests.faults.neighbour import NoisyNeighbour
from tests.faults.network import MANAGEMENT, Wires
from tests.faults.outcome import Outcome
from tests.faults.payload import Corruption, NotANumber, WrongGradient
from tests.faults.plans import document
from tests.faults.quota import Quota
from tests.faults.rails import DeadRail
from tests.faults.shaper import SlowLink
from tests.faults.stopkill import Signal
from tests.faults.storage_fault import Disks
from tests.faults.torn import TornCheckpoint
from tests.faults.world import OtherPlan

ONE_RAIL = Wires()
TWO_RAILS = Wires(rails=("eth0", "eth1"))
STORAGE = "checkpoints"
DISK_MB_S = 80.0

Accused = frozenset[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One laboratory run and its right answer: any of these culprits, with any of these causes."""

    inject: tuple[Injector, ...]
    culprits: Accused = frozenset()
    causes: frozenset[str] = frozenset()
    phases: tuple[str, ...] | None = ()
    nodes: int = 2
    wires: Wires = ONE_RAIL
    changes: Mapping[str, Any] = field(default_factory=dict)
    statuses: tuple[str, ...] = ("FAIL",)

    def run(self, seed: int) -> Outcome:
        """Build the cluster, run the plan on it under the faults, tear it down."""
        with Lab(self.nodes, self.wires) as lab:
            changes = {"seed": seed, **self.changes, **self._storage(lab)}
            return lab.run(document(self.nodes, self.wires, self.phases, **changes), self.inject)

    def _storage(self, lab: Lab) -> dict[str, Any]:
        for injector in self.inject:
            if isinstance(injector, Disks):
                return {
                    "storage": [
                        {
                            "name": STORAGE,
                            "path": str(injector.path(lab)),
                            "write_mb_s": injector.mb_s,
                            "source": "the laboratory's throttle",
                        }
                    ]
                }
        return {}


def proven(make: Callable[[int], Case], seed: int, tries: int = 3) -> tuple[Case, Outcome]:
    """Run a case until its faults can be shown to have bitten; `InjectorError` if they never do.

    Repeated is only what the injector's own counter refused, whatever the product had to say about it.
    """
    for _ in range(tries - 1):
        case = make(seed)
        with contextlib.suppress(InjectorError):
            return case, case.run(seed)
    case = make(seed)
    return case, case.run(seed)


@dataclass(frozen=True)
class Answer:
    """How good an answer was."""

    status: str | None
    detected: bool  # there was a failure at all
    right_culprit: bool
    right_cause: bool
    right: bool  # found, with one accusation that has both right, and nothing innocent accused
    innocent: int  # accusations of others


def answer(case: Case, outcome: Outcome) -> Answer:
    """Judge the judge."""
    accused = [((kind, name), cause) for _, kind, name, cause in outcome.culprits()]
    detected = outcome.verdict in case.statuses
    innocent = sum(who not in case.culprits for who, _ in accused)
    both = any(who in case.culprits and cause in case.causes for who, cause in accused)
    return Answer(
        status=outcome.verdict,
        detected=detected,
        right_culprit=any(who in case.culprits for who, _ in accused),
        right_cause=any(cause in case.causes for _, cause in accused),
        right=detected and both and innocent == 0,
        innocent=innocent,
    )


def _dice(name: str, seed: int) -> random.Random:
    return random.Random(f"{name} {seed}")


def slow_rank(seed: int) -> Case:
    """A rank that is throttled for a fifth of its time: its steps compute about 1.25 times as long."""
    node = _dice("slow rank", seed).randrange(2)
    return Case(
        inject=(Quota(node=node),),
        phases=("fitness", "training"),
        culprits=frozenset({("rank", str(node)), ("node", str(node))}),
        causes=frozenset({"quota"}),
    )


def throttled_cluster(seed: int) -> Case:
    """All nodes are throttled alike, so that no rank is slower than its peers."""
    return Case(
        inject=(Quota(node=0), Quota(node=1)),
        phases=("fitness", "training"),
        culprits=frozenset({("stack", "cpu quota")}),
        causes=frozenset({"quota"}),
    )


def half_rate_link(seed: int) -> Case:
    """One node's cable at half its rate, both ways."""
    node = _dice("half-rate link", seed).randrange(3)
    return Case(
        inject=(SlowLink(node=node, both=True),),
        phases=("pairs",),
        nodes=3,
        culprits=frozenset({("node", str(node)), ("nic", f"{node}/eth0")}),
        causes=frozenset({"half_rate_link"}),
    )


def loss(seed: int) -> Case:
    """One node's cable loses 1 % of all packets, both ways."""
    node = _dice("loss", seed).randrange(3)
    return Case(
        inject=(Loss(node=node),),
        phases=("pairs",),
        nodes=3,
        culprits=frozenset({("node", str(node)), ("nic", f"{node}/eth0")}),
        causes=frozenset({"loss"}),
    )


def dropped_large_frames(seed: int) -> Case:
    """Small packets get to and from one node, frames of full size do not."""
    node = _dice("dropped large frames", seed).randrange(3)
    return Case(
        inject=(LargeFrames(node=node),),
        phases=("rails",),
        nodes=3,
        culprits=frozenset({("nic", f"{node}/eth0")}),
        causes=frozenset({"dead_rail"}),
    )


def dead_rail(seed: int) -> Case:
    """A rail of one node without a cable, or one whose switch forwards nothing although the link is up.

    Three nodes: of a rail that only fails to connect two, no one can say which end is dead.
    """
    dice = _dice("dead rail", seed)
    node, how = dice.randrange(3), dice.choice(("unplugged", "isolated"))
    rail = dice.choice(("eth0", "eth1"))
    return Case(
        inject=(DeadRail(node=node, rail=rail, how=how),),
        phases=("rails",),
        nodes=3,
        wires=TWO_RAILS,
        culprits=frozenset({("nic", f"{node}/{rail}")}),
        causes=frozenset({"dead_rail"}),
    )


def slow_storage(seed: int) -> Case:
    """One node's disk, or every node's, at half its declared rate."""
    slow = _dice("slow storage", seed).choice(((0,), (1,), (0, 1)))
    name = STORAGE if len(slow) == 2 else f"{STORAGE}@{slow[0]}"
    return Case(
        inject=(Disks(mb_s=DISK_MB_S, slow=slow),),
        phases=("storage",),
        culprits=frozenset({("storage", name)}),
        causes=frozenset({"slow_storage"}),
    )


def corruption(seed: int) -> Case:
    """One element of what a rank contributes to all-reduces is now and then lost, or has a bit flipped."""
    dice = _dice("corruption", seed)
    rank, mask = dice.randrange(2), dice.choice((None, 1 << dice.randrange(48)))
    return Case(
        inject=(Corruption(rank=rank, mask=mask, every=dice.randint(1, 3)),),
        phases=("collectives",),
        culprits=frozenset({("rank", str(rank))}),
        causes=frozenset({"corruption"}),
    )


def large_corruption(seed: int) -> Case:
    """One bit of what a rank contributes is flipped, but only in all-reduces of more than 8 MiB."""
    dice = _dice("large corruption", seed)
    rank, mask = dice.randrange(2), 1 << dice.randrange(48)
    return Case(
        inject=(Corruption(rank=rank, mask=mask, least_bytes=8 << 20),),
        phases=("collectives",),
        wires=Wires(rail_gbit_s=1.5),  # fast enough, with calls as long as a full run allows, for such sizes
        changes={"depth": "full"},
        culprits=frozenset({("rank", str(rank))}),
        causes=frozenset({"corruption"}),
    )


def wrong_gradient(seed: int) -> Case:
    """One rank now and then computes one element of one gradient wrong; the reduction hands it to all."""
    dice = _dice("wrong gradient", seed)
    rank = dice.randrange(2)
    fault = WrongGradient(rank=rank, every=dice.randint(40, 80), parameter=dice.randrange(30))
    return Case(
        inject=(fault,),
        phases=("training",),
        culprits=frozenset({("rank", str(rank))}),
        causes=frozenset({"corruption"}),
    )


def not_a_number(seed: int) -> Case:
    """One parameter's gradient turns NaN on one rank."""
    dice = _dice("NaN", seed)
    rank = dice.randrange(2)
    fault = NotANumber(rank=rank, after=dice.randint(3, 40), parameter=dice.randrange(30))
    return Case(
        inject=(fault,),
        phases=("training",),
        culprits=frozenset({("rank", str(rank))}),
        causes=frozenset({"nan"}),
    )


def killed(seed: int) -> Case:
    """A rank is killed in the middle of the run."""
    return _signalled("SIGKILL", seed, signal.SIGKILL, "killed")


def hung(seed: int) -> Case:
    """A rank is stopped in the middle of the run."""
    return _signalled("SIGSTOP", seed, signal.SIGSTOP, "hung")


def _signalled(name: str, seed: int, number: signal.Signals, cause: str) -> Case:
    dice = _dice(name, seed)
    rank, phase = dice.randrange(2), dice.choice(("collectives", "training"))
    return Case(
        inject=(Signal(rank=rank, number=number, delay_s=dice.uniform(0.1, 2.0)),),
        phases=(phase,),
        culprits=frozenset({("rank", str(rank))}),
        causes=frozenset({cause}),
        changes={"hang_timeout_s": 6},
    )


def tcp_fallback(seed: int) -> Case:
    """Training traffic takes the management network: by a wrong setting, or by none."""
    return Case(
        inject=(Fallback(interface=_dice("TCP fallback", seed).choice((MANAGEMENT, None))),),
        phases=("collectives",),
        culprits=frozenset({("stack", "transport")}),
        causes=frozenset({"tcp_fallback"}),
    )


def torn_checkpoint(seed: int) -> Case:
    """The newest committed checkpoint of one node is damaged between the kill and the resume."""
    dice = _dice("torn checkpoint", seed)
    node = dice.randrange(2)
    return Case(
        inject=(TornCheckpoint(node=node, how=dice.choice(("truncated", "flipped"))),),
        phases=("resume",),
        culprits=frozenset({("storage", f"{STORAGE}@{node}")}),
        causes=frozenset({"torn_checkpoint"}),
    )


def wrong_world_size(seed: int) -> Case:
    """One node was given a plan of another size."""
    # Node 0 is the one that judges, by its own plan.
    changes = _dice("wrong world size", seed).choice(({"nodes": 3}, {"ranks_per_node": 2}))
    return Case(
        inject=(OtherPlan(node=1, changes=changes),),
        phases=(),
        culprits=frozenset({("node", "1")}),
        causes=frozenset({"wrong_world_size"}),
        changes={"join_timeout_s": 20},
    )


CLASSES: Mapping[str, Callable[[int], Case]] = {
    "slow rank": slow_rank,
    "throttled cluster": throttled_cluster,
    "half-rate link": half_rate_link,
    "1 % loss": loss,
    "dropped large frames": dropped_large_frames,
    "dead rail": dead_rail,
    "slow storage": slow_storage,
    "corruption": corruption,
    "corruption of large messages": large_corruption,
    "wrong gradient": wrong_gradient,
    "NaN": not_a_number,
    "SIGKILL": killed,
    "SIGSTOP": hung,
    "TCP fallback": tcp_fallback,
    "torn checkpoint": torn_checkpoint,
    "wrong world size": wrong_world_size,
}


def healthy(seed: int, noisy: bool = False) -> Case:
    """No fault: shaped rails and disks, all quick phases; at most a neighbour who takes a core at times."""
    return Case(
        inject=(Disks(mb_s=DISK_MB_S), *((NoisyNeighbour(),) if noisy else ())),
        phases=None,
        wires=TWO_RAILS,
        statuses=("PASS",),
    )


def disturbed(seed: int) -> Case:
    """No fault, but a neighbour on the same machine."""
    return healthy(seed, noisy=True)
