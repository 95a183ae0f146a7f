"""Helm on a real API server, whose uninstall of a release was killed."""

import subprocess
from collections.abc import Iterator

import pytest

from components.kubernetes.charts import charts
from components.kubernetes.training import trainer
from infra.clouds.kubectl import connected
from rehearsal.controlplane import binaries
from rehearsal.controlplane.control_plane import ControlPlane, ControlPlaneOptions, running
from rehearsal.controlplane.nodes import KwokPool, pool_nodes
from tests.cluster.upgrades.test_helm import helm, pods
from tests.cluster.waiting import eventually
from trainstack.plans import releases

pytestmark = [pytest.mark.more, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with one node and without controllers of ours."""
    with running(ControlPlaneOptions(tmp_path_factory.mktemp("helm") / "run")) as plane:
        for body in pool_nodes(KwokPool("system", "p4d.24xlarge", 1)):
            plane.api().create(body)
        yield plane


def uninstall(plane: ControlPlane, name: str, *more: str) -> "subprocess.Popen[str]":
    """Start the uninstall of a release, as the provider does."""
    found = binaries.ready()
    assert found
    return subprocess.Popen(
        [found["helm"], "uninstall", name, "--namespace", charts()[name].namespace, "--wait", *more],
        env={"KUBECONFIG": str(plane.kubeconfig), "HOME": str(plane.home)}, stdout=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip


def killed_uninstall(empty: ControlPlane, name: str) -> None:
    """Kill `helm uninstall` while it waits for an object of the chart."""
    space = charts()[name].namespace
    (config, *_) = [
        body
        for body in empty.api().list("v1", "ConfigMap", space)
        if body["metadata"]["name"].startswith(name)
    ]
    at = ("v1", "ConfigMap", config["metadata"]["name"])
    empty.api().patch(*at, {"metadata": {"finalizers": ["example.com/held"]}}, space)
    process = uninstall(empty, name, "--timeout", "300s")
    eventually(lambda: "deletionTimestamp" in empty.api().get(*at, space)["metadata"])
    process.kill()
    process.wait()
    empty.api().patch(*at, {"metadata": {"finalizers": None}}, space)


@pytest.mark.parametrize("in_state", [True, False])
def test_a_release_whose_uninstall_was_killed_is_installed_again(empty: ControlPlane, in_state: bool) -> None:
    name, space, api = "jobset", charts()["jobset"].namespace, empty.api()
    (chart,) = binaries.files_of(name)
    waits = ("--create-namespace", "--wait", "--timeout", "60s")
    done = helm(empty, "install", name, chart, trainer.JOBSET_VALUES, *waits)
    assert done.returncode == 0, done.stderr
    killed_uninstall(empty, name)
    done = helm(empty, "upgrade", name, chart, trainer.JOBSET_VALUES)
    assert done.returncode == 1 and "has no deployed releases" in done.stderr
    done = helm(empty, "install", name, chart, trainer.JOBSET_VALUES)
    assert done.returncode == 1 and "cannot re-use a name that is still in use" in done.stderr
    with connected(None, empty.kubeconfig, writing=True) as cluster:
        (left,) = releases.HelmRecords(cluster, {(space, name)}).pending()
        assert left.status == releases.UNINSTALLING
        state = [(space, name)] if in_state else []
        halfway = releases.settle(cluster, [left], lambda _: None, limit_s=0, state=state)
        assert halfway == state
        if halfway:  # the provider's Delete, which the engine calls
            assert uninstall(empty, name).wait(120) == 0
            assert not api.list("apps/v1", "Deployment", space)
        assert releases.HelmRecords(cluster, [(space, name)]).gone([(space, name)]) == [(space, name)]
    # The provider's Create; what is left of the interrupted uninstall is adopted.
    done = helm(empty, "install", name, chart, trainer.JOBSET_VALUES, "--atomic", "--timeout", "60s")
    assert done.returncode == 0, done.stderr
    assert pods(api, space)
    assert uninstall(empty, name).wait(120) == 0
