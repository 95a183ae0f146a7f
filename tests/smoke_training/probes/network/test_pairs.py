"""The live probes between nodes: real gloo groups whose "nodes" are threads of this process.

What only a network can show (shaped rates, dead rails, losses) is in the fault laboratory.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor
from torch._C._distributed_c10d import HashStore, PrefixStore, Store

from smoke_training import evidence
from smoke_training.evidence.links import Cell, Rail, Tournament
from smoke_training.judges.network import links, loss, rails
from smoke_training.judges.sampling import VerdictSampling
from smoke_training.model import Check, Verdict
from smoke_training.plan import Plan
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.network import pairs, reach
from smoke_training.probes.network import rails as probe
from smoke_training.probes.network.arena import Arena, Half, Schedule, over_sockets
from smoke_training.probes.network.endpoints import MESSAGES, GlooEndpoint
from smoke_training.runtime import counters, host
from tests.smoke_training.samples import plan

pytestmark = pytest.mark.alone

T = TypeVar("T")


class Together:
    """The exchange of a process group of threads: `gather` gives everyone's item to everyone."""

    def __init__(self, count: int) -> None:
        self.items: list[object] = [None] * count
        self.barrier = threading.Barrier(count, timeout=30)

    def gather(self, rank: int, item: T) -> list[T]:
        self.items[rank] = item
        self.barrier.wait()
        found: list[Any] = list(self.items)
        self.barrier.wait()
        return found


class ThreadGroup(Group):
    """One thread's view; one rank per node."""

    def __init__(self, together: Together, rank: int, count: int) -> None:
        super().__init__(
            rank=rank, world=count, local_rank=0, node=rank, device=torch.device("cpu"), backend="gloo"
        )
        object.__setattr__(self, "together", together)

    def gather(self, item: T) -> list[T]:
        found: Together = self.together  # type: ignore[attr-defined]
        return found.gather(self.rank, item)


class SlowEndpoint(GlooEndpoint):
    """An endpoint at which what comes from a node takes as many seconds longer as `slow(node)` says."""

    def __init__(self, store: Store, place: int, count: int, slow: Callable[[int | None], float]) -> None:
        super().__init__(store, place, count, "lo")
        self.slow = slow

    def transfer(self, peer: int, size: int, *, sends: bool) -> float | None:
        seconds, late = super().transfer(peer, size, sends=sends), self.slow(None if sends else peer)
        time.sleep(late)
        return None if seconds is None else seconds + late


def together(count: int, work: Callable[[Group, Store], Any]) -> list[Any]:
    """Run `work` on as many threads as nodes; what each returned."""
    shared, store = Together(count), HashStore()
    found: list[Any] = [None] * count

    def run(rank: int) -> None:
        try:
            found[rank] = work(ThreadGroup(shared, rank, count), PrefixStore("wires", store))
        except BaseException:
            shared.barrier.abort()
            raise

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def arena(group: Group, store: Store, count: int, slow: Callable[[int, int | None], float]) -> Arena:
    end = SlowEndpoint(store, group.rank, count, lambda source: slow(group.rank, source))
    return Arena(group=group, nodes=tuple(range(count)), endpoint=end, interface="lo")


def context(group: Group, wanted: Plan) -> ProbeContext:
    return ProbeContext(group=group, plan=wanted, scratch=Path("/nowhere"), sampling=VerdictSampling(wanted))


def judge(wanted: Plan, record: Tournament, rule: Any = links.links) -> Check:
    found = rule(wanted, evidence.parse([evidence.line_of(record)]))
    assert isinstance(found, Check)
    return found


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Visits of a few milliseconds: a loopback has no rate that would have to be reached."""
    monkeypatch.setattr(pairs, "LARGEST", 256 << 10)
    # Threads of one process read each other's waits for CPUs, which processes of their own do not.
    monkeypatch.setattr(host, "longest_wait", lambda before, after: 0.0)
    yield


def meet(count: int, slow: Callable[[int, int | None], float]) -> tuple[Plan, Tournament]:
    # The declared rate is far below what a loopback carries and far above what a delayed one does.
    wanted = plan(nodes=count, rails=["lo"], rail_gbit_s=0.2)

    def work(group: Group, store: Store) -> Tournament:
        return pairs.Rounds(context(group, wanted), arena(group, store, count, slow)).run("pairs", 3.0)

    found: list[Tournament] = together(count, work)
    assert all(met.cells == found[0].cells for met in found), "every rank must come to the same record"
    return wanted, found[0]


class Late(pairs.Rounds):
    """Pilots over a wire of 10 Gb/s on which a visit takes 3 ms longer than its bytes do, as on a GPU."""

    def _pilot(self, schedule: Schedule) -> tuple[list[Half], dict[tuple[int, int], float]]:
        gigabits = MESSAGES * self.usual * 8 / 1e9
        return [], {pair: gigabits / (0.003 + gigabits / 10) for both in schedule for pair in both}


def test_messages_are_as_long_as_the_wire_asks_for_and_not_as_latency_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pairs, "LARGEST", 64 << 20)
    alone = together(1, lambda group, _: group)[0]
    rounds = Late(
        context(alone, plan(nodes=2, rails=[], rail_gbit_s=None)),
        Arena(group=alone, nodes=(0, 1), endpoint=None, interface=None),
    )
    rounds._choose_sizes([[(0, 1)], [(1, 0)]])
    visit_s = MESSAGES * rounds.usual * 8 / 1e10
    assert visit_s > 0.5 * pairs.VISIT_S
    assert not rounds.crawling


@pytest.mark.parametrize(
    ("cuda", "fabric", "adapters", "sockets"),
    [
        (False, "efa", ["efa_0/1"], True),  # gloo goes by TCP whatever there is
        (True, "tcp", [], True),
        (True, "tcp", ["mlx5_0/1"], False),  # NCCL takes what it finds
        (True, "efa", [], False),
        (True, "tcpxo", [], False),  # past the kernel
    ],
)
def test_the_kernels_tcp_is_asked_only_about_what_it_carried(
    cuda: bool, fabric: str, adapters: list[str], sockets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = counters.Port(active=True, tx_bytes=0, rx_bytes=0, tx_packets=0, retransmitted=None)
    monkeypatch.setattr(counters, "ports", lambda: dict.fromkeys(adapters, port))
    (group,) = together(1, lambda group, _: group)
    if cuda:
        object.__setattr__(group, "device", torch.device("cuda", 0))
    assert over_sockets(group, plan(fabric=fabric)) is sockets


def test_a_tournament_visits_every_pair_both_ways_and_passes() -> None:
    wanted, met = meet(4, lambda place, source: 0.0)
    assert evidence.parse([evidence.line_of(met)]).of(Tournament) == met
    assert len(met.cells) == 12
    assert {len(cell.gbit_s) for cell in met.cells} == {len(met.cells[0].gbit_s)}
    assert met.cells[0].segments is not None
    assert judge(wanted, met).status is Verdict.PASS
    assert judge(wanted, met, loss.loss).status is not Verdict.FAIL


def test_a_node_that_receives_slowly_is_measured_alone_and_accused() -> None:
    wanted, met = meet(4, lambda place, source: 0.12 if place == 2 and source is not None else 0.0)
    found = judge(wanted, met)
    assert [(item.kind, item.id) for item in found.culprits] == [("node", "2")]
    assert "receives slowly" in found.culprits[0].evidence[0]
    assert [cell.receiver for cell in met.cells if cell.serial_gbit_s] == [2]


def test_a_slow_pair_is_a_link_that_is_slow_one_way() -> None:
    wanted, met = meet(4, lambda place, source: 0.12 if (source, place) == (0, 3) else 0.0)
    found = judge(wanted, met)
    assert [(item.kind, item.id) for item in found.culprits] == [("link", "0-3")]
    assert "0 to 3" in found.culprits[0].evidence[0]


def test_a_pair_that_was_disturbed_once_gets_the_messages_of_all_others() -> None:
    disturbed = iter([0.12])
    _, met = meet(2, lambda place, source: next(disturbed, 0.0) if (source, place) == (0, 1) else 0.0)
    there, back = met.cells
    # Only the pilot of a pair that crawls is kept, because its messages are short from then on.
    assert len(there.gbit_s) == len(back.gbit_s)


def test_a_pair_that_crawls_gets_short_messages() -> None:
    _, met = meet(2, lambda place, source: 0.12 if (source, place) == (0, 1) else 0.0)
    there, back = met.cells
    assert len(there.gbit_s) == len(back.gbit_s) + 1
    assert min(there.gbit_s[1:]) > 0.5 * MESSAGES * pairs.SHORT * 8 / 0.12 / 1e9
    assert max(there.gbit_s[1:]) < MESSAGES * pairs.SHORT * 8 / 0.12 / 1e9


@pytest.mark.parametrize("count", [17, 20, 33])
def test_among_many_nodes_a_sample_is_drawn_in_which_all_meet_as_many(count: int) -> None:
    nodes = tuple(range(100, 100 + count))
    schedule = pairs.schedule_of(nodes, random.Random(1))
    assert schedule == pairs.schedule_of(nodes, random.Random(1)), "all ranks draw the same"
    assert all(len({node for pair in found for node in pair}) == 2 * len(found) for found in schedule)
    cells = {pair for found in schedule for pair in found}
    assert {(b, a) for a, b in cells} == cells
    for node in nodes:
        assert sum(sender == node for sender, _ in cells) in ((15,) if count % 2 == 0 else (14, 15))


def test_a_slow_node_among_many_is_found_in_a_sample_which_the_result_names() -> None:
    nodes, slow = tuple(range(20)), 7
    dice = random.Random(2)
    cells = tuple(
        Cell(
            sender=a, receiver=b, starved=None, segments=(900,) * 8, retransmitted=(0,) * 8, spurious=None,
            sent_bytes=None, received_bytes=None,
            gbit_s=tuple((0.1 if slow in (a, b) else 0.2) * dice.uniform(0.97, 1.0) for _ in range(8)),
            serial_gbit_s=tuple(0.1 * dice.uniform(0.97, 1.0) for _ in range(10)) if slow in (a, b) else (),
        )
        for found in pairs.schedule_of(nodes, dice) for a, b in found
    )  # fmt: skip
    met = Tournament(
        phase="pairs", nodes=nodes, interface="lo", backend="gloo", streams=1, message_bytes=1 << 16,
        seconds=9.0, counter="tcp", cells=cells,
    )  # fmt: skip
    wanted = plan(nodes=20, rails=["lo"], rail_gbit_s=0.2)
    found = judge(wanted, met)
    assert [(item.kind, item.id) for item in found.culprits] == [("node", "7")]
    healthy = replace(met, cells=tuple(replace(c, gbit_s=(0.2,) * 8, serial_gbit_s=()) for c in cells))
    assert judge(wanted, healthy).status is Verdict.PASS
    assert "300 directions" in judge(wanted, healthy).message


def test_a_transfer_that_breaks_off_ends_the_tournament_on_every_rank() -> None:
    class Broken(SlowEndpoint):
        def transfer(self, peer: int, size: int, *, sends: bool) -> float | None:
            raise RuntimeError("Timed out waiting 20000ms for recv operation to complete")

    wanted = plan(nodes=2, rails=["lo"], rail_gbit_s=0.2)

    def work(group: Group, store: Store) -> Tournament:
        end: SlowEndpoint = (Broken if group.rank == 1 else SlowEndpoint)(
            store, group.rank, 2, lambda source: 0.0
        )
        end._timeout = type(end._timeout)(seconds=1)
        seat = Arena(group=group, nodes=(0, 1), endpoint=end, interface="lo")
        return pairs.Rounds(context(group, wanted), seat).run("pairs", 3.0)

    began = time.monotonic()
    found = together(2, work)
    assert time.monotonic() - began < 15
    check = judge(wanted, found[0])
    assert (check.status, check.culprits[0].id) == (Verdict.FAIL, "0-1")
    assert "Timed out" in check.message


def test_a_rail_is_connected_and_all_reduced_by_itself() -> None:
    def work(group: Group, store: Store) -> Any:
        ends = reach.ends(group.gather, "lo", group.node, [0, 1, 2])
        connected = Rail(name="lo", ends=ends, size_bytes=None, seconds=(), error=None)
        return probe._all_reduced(connected, arena(group, store, 3, lambda place, source: 0.0), 1 << 20)

    rail = together(3, work)[0]
    assert (rail.error, rail.size_bytes) == (None, 1 << 20)
    assert len(rail.seconds) == probe.REPETITIONS
    assert [end.reached for end in rail.ends] == [
        {"1": True, "2": True},
        {"0": True, "2": True},
        {"0": True, "1": True},
    ]
    assert all(end.tx_bytes > probe.REPETITIONS * (1 << 20) for end in rail.ends)
    assert rails.dead(evidence.parse([]), rail) == []


def test_an_interface_that_does_not_exist_is_a_dead_rail_of_every_node() -> None:
    ends = together(2, lambda group, store: reach.ends(group.gather, "eth77", group.node, [0, 1]))[0]
    rail = Rail(name="eth77", ends=ends, size_bytes=None, seconds=(), error="not every node answers")
    assert [item.id for item in rails.dead(evidence.parse([]), rail)] == ["0/eth77", "1/eth77"]


def test_before_there_is_a_process_group_nodes_meet_through_the_store() -> None:
    def work(group: Group, store: Store) -> Any:
        name = "eth77" if group.rank == 1 else "lo"
        return reach.ends(reach.StoreExchange(store, group.rank, 3), name, group.rank, range(3))

    found = together(3, work)
    assert found[0] == found[1] == found[2]
    assert not reach.complete(found[0])
    assert [(end.exists, dict(end.reached)) for end in found[0]] == [
        (True, {"1": False, "2": True}),
        (False, {"0": False, "2": False}),
        (True, {"0": True, "1": False}),
    ]


def test_a_sum_over_a_wire_is_a_sum() -> None:
    def work(group: Group, store: Store) -> Tensor:
        buffer = torch.full((8,), float(group.rank + 1))
        GlooEndpoint(store, group.rank, 3, "lo").all_reduce(buffer)
        return buffer

    assert all(torch.equal(buffer, torch.full((8,), 6.0)) for buffer in together(3, work))
