"""Jobs of a manager run on the worker whose quota they get."""

from collections.abc import Iterator

import pytest

from agents.clusters.dispatch import CLUSTER_LABEL
from tests.cluster.multi.fleet import Fleet, metadata_server
from tests.cluster.waiting import eventually

pytestmark = [pytest.mark.timeout(900), pytest.mark.more]


@pytest.fixture(autouse=True)
def _empty(clusters: Fleet) -> Iterator[None]:
    yield
    clusters.finish(*list(clusters.jobs))


def test_jobs_fill_the_cheapest_cluster_first_and_then_the_next(clusters: Fleet) -> None:
    jobs = [clusters.submit("Research") for _ in range(2)]
    for job in jobs:
        clusters.runs_on(job, "west")
    more = [clusters.submit("Vision") for _ in range(2)]
    for job in more:
        clusters.runs_on(job, "east")


def test_a_job_that_no_single_cluster_can_hold_waits_on_the_manager(clusters: Fleet) -> None:
    job = clusters.submit("Research", pods=3)
    clusters.manager.refusal(job)
    assert clusters.where(job) == {}


def test_a_job_stays_with_its_data(clusters: Fleet) -> None:
    job = clusters.submit("Research", pod={"nodeSelector": {CLUSTER_LABEL: "east"}})
    clusters.runs_on(job, "east")


def test_preemption_stops_a_job_on_one_cluster_only(clusters: Fleet) -> None:
    everywhere = [clusters.submit("Research", priority="sweep") for _ in range(4)]
    eventually(lambda: all(clusters.where(job) for job in everywhere), "all four GPUs are used", 30)
    before = {job: clusters.where(job) for job in everywhere}
    urgent = clusters.submit("Research", priority="production")
    eventually(lambda: clusters.where(urgent), lambda: clusters.state(urgent), 40)
    left = [job for job in everywhere if clusters.where(job)]
    assert len(left) == 3
    (stopped,) = set(everywhere) - set(left)
    assert clusters.where(urgent) == before[stopped]
    assert clusters.manager.evictions(stopped) == {"Preempted": 1}
    for lab in clusters.workers.values():
        lab.jobs.update({job: clusters.manager.jobs[job] for job in left})
        found = {job: lab.evictions(job) for job in left}
        assert not any(found.values()), found


def test_a_team_gets_its_guarantee_back_on_the_cluster_where_it_is(clusters: Fleet) -> None:
    borrowing = [clusters.submit("Vision") for _ in range(4)]
    eventually(lambda: all(clusters.where(job) for job in borrowing), "Vision has all four GPUs", 30)
    # Research owns one GPU on each cluster.
    owner = clusters.submit("Research", pod={"nodeSelector": {CLUSTER_LABEL: "east"}})
    clusters.runs_on(owner, "east")
    eventually(lambda: len([job for job in borrowing if clusters.where(job)]) == 3, "one gave way", 30)


def test_jobs_run_on_while_the_dispatcher_and_the_queue_are_down(clusters: Fleet) -> None:
    running = clusters.submit("Research")
    clusters.runs_on(running, "west")
    clusters.stop()
    waiting = clusters.submit("Research")
    eventually(lambda: clusters.manager.condition(waiting, "QuotaReserved").get("status") == "True", "quota")
    clusters.restart_queue()
    assert clusters.where(running) == {"west": 1}
    assert clusters.where(waiting) == {}
    clusters.start()
    clusters.runs_on(waiting, "west")
    assert clusters.where(running) == {"west": 1}


def test_a_cluster_whose_token_ended_gets_no_job_until_it_is_renewed(clusters: Fleet) -> None:
    clusters.write("west", clusters.config("west", "ended"))
    eventually(lambda: not clusters.active("west"), "west is lost", 30)
    job = clusters.submit("Research")
    clusters.runs_on(job, "east")
    clusters.stop()
    with metadata_server(clusters.workers["west"].api.token("default", "default")) as metadata:
        clusters.start([clusters.renewed("west")], metadata)
        eventually(lambda: clusters.open("west"), "west has a new token", 60)
        more = clusters.submit("Research")
        clusters.runs_on(more, "west")


def test_a_job_of_a_lost_worker_runs_elsewhere_and_once_when_the_worker_is_back(clusters: Fleet) -> None:
    job = clusters.submit("Research")
    clusters.runs_on(job, "west")
    clusters.write("west", clusters.config("west", "ended"))
    eventually(lambda: "east" in clusters.where(job), lambda: clusters.state(job), 60)
    clusters.connect("west")
    eventually(lambda: clusters.open("west"), "west is back", 60)
    eventually(lambda: len(clusters.where(job)) == 1, lambda: clusters.state(job), 60)
    (_, evictions), *others = clusters.manager.evictions(job).items()
    assert (evictions, others) == (1, [])
