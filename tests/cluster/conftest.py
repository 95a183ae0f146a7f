"""A real control plane for the tests of this folder: one a worker, with Kueue and Trainer as in a stack."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from components.gcp.pools.offers import RDMA_CLASS, RDMA_RESOURCE
from components.kubernetes.queueing import kueue_values
from components.kubernetes.training import trainer
from rehearsal.controlplane import binaries
from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane, ControlPlaneOptions, running

_HERE = Path(__file__).parent
_running = ExitStack()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End the control plane with the last test of this folder: idle, it uses 5 % of a core."""
    if nextitem is None or _HERE not in nextitem.path.parents:
        _running.close()


@pytest.fixture(scope="session", autouse=True)
def _available() -> None:
    if binaries.ready() is None:
        pytest.skip("the control plane is not built here: `make binaries` builds it, and says why it cannot")


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory, _available: None) -> ControlPlane:
    """The control plane of this worker; the tests of this folder share it and clean up after themselves."""
    home: Path = tmp_path_factory.mktemp("control-plane") / "run"
    addons = {
        "jobset": {},
        trainer.CHART: trainer.VALUES,
        "kueue": kueue_values.values(claimed={RDMA_RESOURCE: RDMA_CLASS}),
    }
    return _running.enter_context(running(ControlPlaneOptions(home, addons=addons, node_grace_s=12)))


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> KubernetesApi:
    """The administrator's connection."""
    return _running.enter_context(plane.api())


@pytest.fixture
def namespace(api: KubernetesApi) -> Iterator[str]:
    """A new namespace, removed with what is in it."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    api.create(body)
    yield name
    api.delete("v1", "Namespace", name)
