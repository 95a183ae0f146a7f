"""The live probes between nodes: real gloo groups whose "nodes" are threads of this process.

What only a network can show (shaped rates, dead rails, losses) is in the fault laboratory.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._C._distributed_c10d import HashStore, PrefixStore, Store

from smoke_training import evidence
from smoke_training.evidence.links import LinkSearch, Rail, Tournament
from smoke_training.judges.network import links, loss, rails
from smoke_training.judges.network.wires import replay
from smoke_training.model import Check, Verdict
from smoke_training.plan import Plan
from smoke_training.probes.group import Gang
from smoke_training.probes.network import pairs, reach
from smoke_training.probes.network import rails as probe
from smoke_training.probes.network.pairs import Arena
from smoke_training.probes.network.wires import GlooWire
from smoke_training.runtime import counters
from tests.smoke_training.samples import plan

pytestmark = pytest.mark.alone

Line = dict[str, Any]


class Together:
    """The exchange of a gang of threads: `gather` gives everyone's item to everyone."""

    def __init__(self, count: int) -> None:
        self.items: list[object] = [None] * count
        self.barrier = threading.Barrier(count, timeout=30)

    def gather(self, rank: int, item: object) -> list[object]:
        self.items[rank] = item
        self.barrier.wait()
        found = list(self.items)
        self.barrier.wait()
        return found


class ThreadGang(Gang):
    """One thread's view of the gang; one rank per node."""

    def __init__(self, together: Together, rank: int, count: int) -> None:
        super().__init__(
            rank=rank, world=count, local_rank=0, node=rank, device=torch.device("cpu"), backend="gloo"
        )
        object.__setattr__(self, "together", together)

    def gather(self, item: object) -> list[object]:
        found: Together = self.together  # type: ignore[attr-defined]
        return found.gather(self.rank, item)


class SlowWire(GlooWire):
    """A wire on which what `slow(to, source)` says takes that many seconds longer."""

    def __init__(self, store: Store, place: int, count: int, slow: Callable[[int | None], float]) -> None:
        super().__init__(store, place, count, "lo")
        self.slow = slow

    def transfer(self, to: int | None, source: int | None, messages: int, size: int) -> float | None:
        seconds, late = super().transfer(to, source, messages, size), self.slow(source)
        time.sleep(late)
        return None if seconds is None else seconds + late


def together(count: int, work: Callable[[Gang, Store], Any]) -> list[Any]:
    """Run `work` on as many threads as nodes; what each returned."""
    shared, store = Together(count), HashStore()
    found: list[Any] = [None] * count

    def run(rank: int) -> None:
        try:
            found[rank] = work(ThreadGang(shared, rank, count), PrefixStore("wires", store))
        except BaseException:
            shared.barrier.abort()
            raise

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def arena(gang: Gang, store: Store, count: int, slow: Callable[[int, int | None], float]) -> Arena:
    wire = SlowWire(store, gang.rank, count, lambda source: slow(gang.rank, source))
    return Arena(gang=gang, nodes=tuple(range(count)), wire=wire, interface="lo", seed=1)


def judge(wanted: Plan, line: Line, rule: Any = links.links) -> Check:
    found = rule(wanted, evidence.parse([json.dumps(line)]))
    assert isinstance(found, Check)
    return found


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Visits of a few milliseconds: a loopback has no rate that would have to be reached."""
    monkeypatch.setattr(pairs, "LARGEST", 256 << 10)
    # Threads of one process read each other's waits for CPUs, which processes of their own do not.
    monkeypatch.setattr(counters, "longest_wait", lambda before, after: 0.0)
    yield


def meet(count: int, slow: Callable[[int, int | None], float]) -> tuple[Plan, Line]:
    # The declared rate is far below what a loopback carries and far above what a delayed one does.
    wanted = plan(nodes=count, rails=["lo"], rail_gbit_s=0.2)
    found = together(
        count, lambda gang, store: pairs.tournament(arena(gang, store, count, slow), wanted, "pairs", 3.0)
    )
    assert all(line["cells"] == found[0]["cells"] for line in found), (
        "every rank must come to the same record"
    )
    line: Line = found[0]
    return wanted, line


def test_a_tournament_visits_every_pair_both_ways_and_passes() -> None:
    wanted, line = meet(4, lambda place, source: 0.0)
    met = evidence.parse([json.dumps(line)]).of(Tournament)
    assert met is not None
    assert len(met.cells) == 12
    assert {len(cell.gbit_s) for cell in met.cells} == {len(met.cells[0].gbit_s)}
    assert met.cells[0].segments is not None
    assert judge(wanted, line).status is Verdict.PASS
    assert judge(wanted, line, loss.loss).status is not Verdict.FAIL


def test_a_node_that_receives_slowly_is_measured_alone_and_accused() -> None:
    wanted, line = meet(4, lambda place, source: 0.12 if place == 2 and source is not None else 0.0)
    found = judge(wanted, line)
    assert [(item.kind, item.id) for item in found.culprits] == [("node", "2")]
    assert "receives slowly" in found.culprits[0].evidence[0]
    serial = [cell for cell in line["cells"] if cell["serial_gbit_s"]]
    assert [cell["receiver"] for cell in serial] == [2]


def test_a_slow_pair_is_a_link_that_is_slow_one_way() -> None:
    wanted, line = meet(4, lambda place, source: 0.12 if (source, place) == (0, 3) else 0.0)
    found = judge(wanted, line)
    assert [(item.kind, item.id) for item in found.culprits] == [("link", "0-3")]
    assert "0 to 3" in found.culprits[0].evidence[0]


def test_a_pair_that_was_disturbed_once_gets_the_messages_of_all_others() -> None:
    disturbed = iter([0.12])
    _, line = meet(2, lambda place, source: next(disturbed, 0.0) if (source, place) == (0, 1) else 0.0)
    there, back = line["cells"]
    # Only the pilot of a pair that crawls is kept, because its messages are short from then on.
    assert len(there["gbit_s"]) == len(back["gbit_s"])


def test_a_pair_that_crawls_gets_short_messages() -> None:
    _, line = meet(2, lambda place, source: 0.12 if (source, place) == (0, 1) else 0.0)
    there, back = line["cells"]
    assert len(there["gbit_s"]) == len(back["gbit_s"]) + 1
    assert min(there["gbit_s"][1:]) > 0.5 * pairs.MESSAGES * pairs.SHORT * 8 / 0.12 / 1e9
    assert max(there["gbit_s"][1:]) < pairs.MESSAGES * pairs.SHORT * 8 / 0.12 / 1e9


@pytest.mark.parametrize("culprit", [None, 5])
def test_a_search_among_many_nodes_finds_the_slow_one_and_can_be_replayed(culprit: int | None) -> None:
    count = 9
    wanted = plan(nodes=count, rails=["lo"], rail_gbit_s=0.2)

    def slow(place: int, source: int | None) -> float:
        return 0.12 if source is not None and culprit in (place, source) else 0.0

    found = together(count, lambda gang, store: pairs.search(arena(gang, store, count, slow), wanted))
    record = evidence.parse([json.dumps(found[0])]).of(LinkSearch)
    assert record is not None
    location = replay(wanted, record)
    assert location.nodes == (() if culprit is None else (culprit,))
    check = judge(wanted, found[0])
    assert check.status is (Verdict.PASS if culprit is None else Verdict.FAIL)
    assert judge(wanted, found[0], loss.loss).status is not Verdict.FAIL


def test_a_transfer_that_breaks_off_ends_the_tournament_on_every_rank() -> None:
    class Broken(SlowWire):
        def transfer(self, to: int | None, source: int | None, messages: int, size: int) -> float | None:
            raise RuntimeError("Timed out waiting 20000ms for recv operation to complete")

    wanted = plan(nodes=2, rails=["lo"], rail_gbit_s=0.2)

    def work(gang: Gang, store: Store) -> Line:
        wire: SlowWire = (Broken if gang.rank == 1 else SlowWire)(store, gang.rank, 2, lambda source: 0.0)
        wire._timeout = type(wire._timeout)(seconds=1)
        seat = Arena(gang=gang, nodes=(0, 1), wire=wire, interface="lo", seed=1)
        return pairs.tournament(seat, wanted, "pairs", 3.0)

    began = time.monotonic()
    found = together(2, work)
    assert time.monotonic() - began < 15
    check = judge(wanted, found[0])
    assert (check.status, check.culprits[0].id) == (Verdict.FAIL, "0-1")
    assert "Timed out" in check.message


def test_a_rail_is_connected_and_all_reduced_by_itself() -> None:
    def work(gang: Gang, store: Store) -> Any:
        ends = reach.ends(gang.gather, "lo", gang.node, [0, 1, 2])
        seat = arena(gang, store, 3, lambda place, source: 0.0)
        return ends, probe._all_reduces(seat, seat.wire, "lo", 1 << 20)

    ends, (seconds, moved, error) = together(3, work)[0]
    assert error is None
    assert len(seconds) == probe.REPETITIONS
    assert [end.reached for end in ends] == [
        {"1": True, "2": True},
        {"0": True, "2": True},
        {"0": True, "1": True},
    ]
    assert all(sent > probe.REPETITIONS * (1 << 20) for _, sent in moved.values())
    rail = Rail(name="lo", ends=ends, size_bytes=1 << 20, seconds=tuple(seconds), error=None)
    assert rails.dead(evidence.parse([]), rail) == []


def test_an_interface_that_does_not_exist_is_a_dead_rail_of_every_node() -> None:
    ends = together(2, lambda gang, store: reach.ends(gang.gather, "eth77", gang.node, [0, 1]))[0]
    rail = Rail(name="eth77", ends=ends, size_bytes=None, seconds=(), error="not every node answers")
    assert [item.id for item in rails.dead(evidence.parse([]), rail)] == ["0/eth77", "1/eth77"]


def test_before_there_is_a_gang_nodes_meet_through_the_store() -> None:
    def work(gang: Gang, store: Store) -> Any:
        name = "eth77" if gang.rank == 1 else "lo"
        return reach.ends(reach.StoreExchange(store, gang.rank, 3), name, gang.rank, range(3))

    found = together(3, work)
    assert found[0] == found[1] == found[2]
    assert not reach.complete(found[0])
    assert [(end.exists, dict(end.reached)) for end in found[0]] == [
        (True, {"1": False, "2": True}),
        (False, {"0": False, "2": False}),
        (True, {"0": True, "1": False}),
    ]


def test_a_sum_over_a_wire_is_a_sum() -> None:
    def work(gang: Gang, store: Store) -> Tensor:
        buffer = torch.full((8,), float(gang.rank + 1))
        GlooWire(store, gang.rank, 3, "lo").all_reduce(buffer)
        return buffer

    assert all(torch.equal(buffer, torch.full((8,), 6.0)) for buffer in together(3, work))
