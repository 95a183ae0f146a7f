"""Jobs of a manager run on the worker whose quota they get."""

from collections.abc import Iterator, Mapping

import pytest

from agents.clusters.dispatch import CLUSTER_LABEL
from infra.clouds.kubectl import ClusterApi, connected
from infra.errors import UserError
from tests.cluster.multi.fleet import Fleet, metadata_server
from tests.cluster.waiting import eventually
from trainstack.queues import pod_logs
from trainstack.queues.reading import read
from trainstack.queues.report import Report, report

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


def test_the_queue_of_the_manager_and_the_place_of_a_job(clusters: Fleet) -> None:
    running = clusters.submit("Research", pod={"nodeSelector": {CLUSTER_LABEL: "east"}})
    clusters.runs_on(running, "east")
    waiting = clusters.submit("Vision", pods=3)
    clusters.manager.refusal(waiting)
    teams = {space: team for team, space in clusters.manager.namespaces.items()}
    with connected(None, clusters.planes["manager"].kubeconfig) as manager:
        eventually(lambda: [one.job for one in _queue(manager, teams).running] == [running], "it is listed")
        found = _queue(manager, teams)
        at = pod_logs.place(manager, running, iter(teams))
        nowhere = pod_logs.place(manager, waiting, iter(teams))
        with pytest.raises(UserError) as absent:
            pod_logs.place(manager, "absent", iter(teams))
    assert [one.pools for one in found.running] == [("east-l4",)]
    assert [(one.job, one.place is not None) for one in found.waiting] == [(waiting, True)]
    # Its nodes are in other clusters: their number is not known here, and not zero.
    assert {one.name: (one.gpus, one.used, one.nodes) for one in found.pools} == {
        "east-l4": (2, 1, None),
        "west-l4": (2, 0, None),
    }
    assert (at.cluster, nowhere.cluster) == ("east", "")
    assert absent.value.codes == (("job-not-found", "JOB"),)
    with connected(None, clusters.planes["east"].kubeconfig) as east:
        # KWOK runs no containers.
        (line,) = pod_logs.lines(east, at, 10)
        assert line.startswith(f"[{running}-")
        with pytest.raises(UserError) as empty:
            list(pod_logs.lines(east, nowhere, 10))
    assert empty.value.codes == (("job-without-pods", "JOB"),)


def _queue(manager: ClusterApi, teams: Mapping[str, str]) -> Report:
    return report(read(manager, None), "large", teams)


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
        assert not any(lab.evictions(job) for job in left)


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
