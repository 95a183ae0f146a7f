"""Shares of GPUs in the ledger: turns and partitions count as their part of a GPU, and old rows stay true."""

import base64
import gzip
from typing import Any

import pytest

from agents.gpu_ledger import book_text
from agents.gpu_ledger.attempts import seen
from agents.gpu_ledger.book_store import NAME, text_of
from agents.gpu_ledger.budget import GpuBudget, JobRequest, judge, uses
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.price import gpu_hours, usd
from agents.gpu_ledger.sharing import SharedPools
from agents.gpu_ledger.units import share
from agents.shared.api_server import Object
from infra.clouds.kubectl import ApiResponse
from tests.agents.gpu_ledger.cluster import Cluster, metric
from tests.agents.gpu_ledger.workloads import DAY, GPU, MIDNIGHT, POOL, workload
from trainstack.ledger import books

T, HOUR = MIDNIGHT, 3600
# g6.12xlarge in us-east-1: 4 L4 for $4.6016 an hour.
NODE_USD, GPUS = 4.6016, 4
WHOLE = {"prices": {POOL: {GPU: NODE_USD / GPUS}}, "parts": {}}


def shared(parts: int) -> dict[str, Any]:
    """The terms of the pool with so many shares of each GPU."""
    return {**WHOLE, "parts": {POOL: parts}}


def booked(parts: int, *, shares: int, hours: float = 1) -> TeamBook:
    """A book with jobs that held so many shares together."""
    book, end = TeamBook("A", T), T + round(hours * HOUR)
    found = seen(workload(admitted=T, finished=end, gpus=shares), {POOL: parts})
    assert found
    book.observe(found, end, watched=True)
    return book


@pytest.mark.parametrize("parts", [2, 4, 7, 48])
def test_all_shares_of_a_node_are_its_gpus_and_its_price(parts: int) -> None:
    (row,) = booked(parts, shares=GPUS * parts).totals()
    assert row.resource == f"{GPU}/{parts}" and row.held_s == GPUS * parts * HOUR, (
        "whole seconds, no rounding"
    )
    assert gpu_hours(row.resource, row.held_s) == pytest.approx(GPUS)
    price = usd(WHOLE["prices"], POOL, row.resource, row.held_s)
    assert price == pytest.approx(NODE_USD)


def test_seven_partitions_of_one_gpu_use_up_one_gpu_hour_of_the_budget() -> None:
    budget, book = GpuBudget(usd=None, gpu_hours=2, stop=True), booked(7, shares=7)
    (use,) = found = uses(budget, book, (), WHOLE["prices"], T + HOUR)
    assert use.used == pytest.approx(1)

    def starts(resource: str, hours: float) -> bool:
        asked = JobRequest("a", "default", {(POOL, resource): 1}, round(hours * HOUR))
        return judge(asked, budget, found, WHOLE["prices"], T + HOUR).starts

    assert starts(share(GPU, 7), 7) and not starts(share(GPU, 7), 7.1)
    assert starts(GPU, 1) and not starts(GPU, 1.1)


def month(cluster: Cluster) -> books.Month:
    """The month as `trainstack ledger` reads it."""

    def ask(path: str) -> ApiResponse:
        found = cluster.config_maps.get(("team-a", path.rpartition("/")[2]))
        return ApiResponse(200, dict(found)) if found else ApiResponse(404, {})

    return books.read(ask, "A", "team-a", "2026-11")


def test_rows_from_before_a_pool_was_shared_stay_whole_gpus() -> None:
    cluster = Cluster()
    cluster.terms = WHOLE
    cluster.put(workload("whole", admitted=T - 2 * HOUR, finished=T - HOUR, gpus=4))
    cluster.run()
    cluster.terms = shared(4)
    cluster.put(workload("turn", admitted=T - HOUR, finished=T, gpus=4))
    made = cluster.run()
    lines = {line.row.resource: line for line in month(cluster).lines}
    assert {name: line.held_hours for name, line in lines.items()} == {GPU: 4, f"{GPU}/4": 1}
    assert lines[GPU].usd == pytest.approx(4 * NODE_USD / GPUS)
    assert lines[f"{GPU}/4"].usd == pytest.approx(NODE_USD / GPUS)
    assert metric(made, "trainstack_gpu_hours_total", resource=f"{GPU}/4", state="held") == pytest.approx(1)


def test_another_number_of_turns_counts_from_its_beginning() -> None:
    cluster = Cluster()
    cluster.terms = shared(4)
    cluster.put(workload(admitted=T, gpus=4))
    cluster.run()
    changed = cluster.book().seen
    cluster.terms = shared(2)
    cluster.run()
    cluster.put(workload(admitted=T, gpus=4, finished=changed + HOUR))
    cluster.run()
    held = {row.resource: row.held_s for row in cluster.rows()}
    assert held == {f"{GPU}/4": 4 * (changed - T), f"{GPU}/2": 4 * HOUR}
    assert cluster.book().uncertain == {}


def of_before(cluster: Cluster, price: float, *, days: int = 0) -> None:
    """A book, and after `days` an archive, of a release that named shares like whole GPUs."""
    cluster.terms = {"prices": {POOL: {GPU: price}}}
    cluster.put(workload(admitted=T - 2 * HOUR, finished=T - HOUR, gpus=4))
    cluster.run()
    cluster.clock += days * DAY
    cluster.steady += days * DAY
    cluster.run()
    for name in [key for key in cluster.config_maps if key[1].startswith(NAME)]:
        assert '"parts"' in text_of(cluster.config_maps[name])
        _forget_parts(cluster, name)


def _forget_parts(cluster: Cluster, name: tuple[str, str]) -> None:
    found: Object = cluster.config_maps[name]
    text = text_of(found).replace('"parts":{},', "").replace('"parts": {}, ', "")
    assert '"parts"' not in text
    (key,) = found["binaryData"]
    data = base64.b64encode(gzip.compress(text.encode())).decode()
    cluster.config_maps[name] = {**found, "binaryData": {key: data}}


@pytest.mark.parametrize("days", [0, 3])
def test_a_book_of_an_older_release_keeps_its_dollars(days: int) -> None:
    cluster = Cluster()
    of_before(cluster, NODE_USD / GPUS / 4, days=days)
    before = month(cluster)
    assert [before.held_hours, before.usd] == pytest.approx([4, NODE_USD / GPUS])
    cluster.terms = shared(4)
    made = cluster.collector()
    cluster.run(made)
    after = month(cluster)
    assert [after.held_hours, after.usd] == pytest.approx([1, NODE_USD / GPUS])
    assert not metric(made, "trainstack_gpu_hours_total", state="held"), "nothing is counted again"


def test_a_book_of_an_older_release_with_whole_gpus_stays_whole() -> None:
    cluster = Cluster()
    of_before(cluster, NODE_USD / GPUS)
    cluster.terms = shared(4)
    cluster.run()
    assert [month(cluster).held_hours, month(cluster).usd] == pytest.approx([4, NODE_USD])


def test_a_book_of_the_same_shares_is_not_changed() -> None:
    book = booked(4, shares=3)
    book.terms = shared(4)
    before = book_text.text(book)
    SharedPools.of(shared(4)).renew(book)
    assert book_text.text(book) == before
