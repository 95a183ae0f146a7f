"""A worker is added, and removed, while jobs run and wait on the manager."""

from collections.abc import Iterator

import pytest

from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.multi.conftest import ORIGIN, values
from tests.cluster.multi.fleet import Fleet, fleet
from tests.cluster.multi.lifetimes import watched
from tests.cluster.multi.membership import changed

# A job that writes a checkpoint when it is stopped.
SLOW = {"trainstack.dev/stop-seconds": "3s"}
pytestmark = [pytest.mark.timeout(900), pytest.mark.more]


@pytest.fixture(autouse=True)
def _empty(clusters: Fleet) -> Iterator[None]:
    yield
    clusters.finish(*list(clusters.jobs))


@pytest.fixture(scope="module")
def clusters(planes: dict[str, ControlPlane], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two workers, of which the manager knows one."""
    folder = tmp_path_factory.mktemp("programs")
    with fleet(planes, ORIGIN, values("manager"), folder, first=["east"]) as found:
        yield found


def test_a_worker_comes_and_goes_while_jobs_run_and_wait(clusters: Fleet) -> None:
    running = [clusters.submit(team) for team in ("Research", "Vision")]
    for job in running:
        clusters.runs_on(job, "east")
    waiting = [clusters.submit(team, notes=SLOW) for team in ("Research", "Vision")]
    for job in waiting:
        clusters.manager.refusal(job)

    with watched({name: clusters.planes[name] for name in clusters.workers}) as lifetimes:
        changed(clusters, ORIGIN, ["east"], ["east", "west"])
        # The program writes it once its pod is replaced: quota is given before.
        clusters.connect("west")
        for job in waiting:
            clusters.runs_on(job, "west")
        assert [clusters.where(job) for job in running] == [{"east": 1}] * 2
        assert not any(clusters.manager.evictions(job) for job in running)

        changed(clusters, ORIGIN, ["east", "west"], ["east"])
        clusters.finish(*running)
        for job in waiting:
            clusters.runs_on(job, "east")
        assert not lifetimes.twice()
        assert {job: clusters.manager.evictions(job) for job in waiting} == {
            job: {"AdmissionCheck": 1} for job in waiting
        }
