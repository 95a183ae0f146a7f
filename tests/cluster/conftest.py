"""A real control plane for the tests of this folder: one a worker, with Kueue and Trainer as in a stack."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.kubernetes.queueing import kueue_values
from components.kubernetes.training import trainer
from rehearsal.controlplane import binaries
from rehearsal.controlplane.api import Api, Object
from rehearsal.controlplane.order import ControlPlane, Order, running


@pytest.fixture(scope="session", autouse=True)
def _available() -> None:
    if binaries.ready() is None:
        pytest.skip("the control plane is not built here: `make binaries` builds it, and says why it cannot")


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory, _available: None) -> Iterator[ControlPlane]:
    """The control plane of this worker; the tests of this folder share it and clean up after themselves."""
    home: Path = tmp_path_factory.mktemp("control-plane") / "run"
    addons = {
        "jobset": {},
        trainer.CHART: trainer.VALUES,
        "kueue": kueue_values.values(claimed={}),
    }
    with running(Order(home, addons=addons, node_grace_s=12)) as plane:
        yield plane


@pytest.fixture(scope="package")
def api(plane: ControlPlane) -> Iterator[Api]:
    """The administrator's connection."""
    with plane.api() as api:
        yield api


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    """A new namespace, removed with what is in it."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    api.create(body)
    yield name
    api.delete("v1", "Namespace", name)
