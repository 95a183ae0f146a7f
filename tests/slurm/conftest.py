"""A cluster of real daemons, for all tests of a process."""

from collections.abc import Iterator

import pytest

from infra.engine.golang import SetupError
from rehearsal.slurm import packages
from rehearsal.slurm.cluster import LocalSlurm
from tests.slurm import systems

BUDGET_USD = 100


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSlurm]:
    """The pools and teams of dev-aws with fewer nodes; Vision has a budget that stops its jobs.

    The user of this process is a member of all three teams.
    """
    try:
        packages.root()
    except SetupError as error:
        pytest.skip(str(error))
    given = systems.spec(pools={"a100": 4, "l4": 2, "cpu": 1})
    given = systems.with_team(given, "Vision", monthly_usd=BUDGET_USD, over_budget="stop")
    folder = tmp_path_factory.mktemp("slurm")
    with LocalSlurm(folder, lambda place: systems.files_22_05(given, place)) as cluster:
        for team in ("research", "vision", "applied-ml"):
            cluster.output("bash", str(folder / "etc/add-user.sh"), cluster.user, team)
        yield cluster


@pytest.fixture(autouse=True)
def _empty(request: pytest.FixtureRequest) -> Iterator[None]:
    """No job of a test is left for the next one."""
    yield
    if "slurm" in request.fixturenames:
        cluster: LocalSlurm = request.getfixturevalue("slurm")
        cluster.run("scancel", "--user", cluster.user)
        cluster.until(lambda: not cluster.run("squeue", "--noheader").stdout, what="no jobs")
