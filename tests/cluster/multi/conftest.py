"""Three control planes: a manager and two workers, each with Kueue, JobSet and Trainer as in a stack."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.queueing import kueue_values
from components.kubernetes.training import trainer
from rehearsal.controlplane.control_plane import ControlPlane, ControlPlaneOptions, running
from tests.cluster.multi.fleet import Fleet, fleet

NAMES = ("manager", "east", "west")
ORIGIN = "large-test"
LOST_S = 3


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory, _available: None) -> Iterator[dict[str, ControlPlane]]:
    """The control planes by name; they start together."""
    home: Path = tmp_path_factory.mktemp("clusters")
    with ExitStack() as stack:

        def start(name: str) -> ControlPlane:
            return stack.enter_context(running(options(home / name)))

        with ThreadPoolExecutor() as pool:
            yield dict(zip(NAMES, pool.map(start, NAMES), strict=True))


def options(home: Path, *, keep: bool = False) -> ControlPlaneOptions:
    """A control plane of the cluster of the folder's name."""
    addons = {"jobset": {}, trainer.CHART: trainer.VALUES, "kueue": values(home.name)}
    return ControlPlaneOptions(home, addons=addons, keep=keep)


def values(name: str) -> dict[str, Any]:
    """Values of Kueue in one of the clusters; the manager's have a short time until a worker is lost."""
    made = kueue_values.values(claimed={}, manages=ORIGIN if name == "manager" else "")
    config = json.loads(made["managerConfig"]["controllerManagerConfigYaml"])
    if "multiKueue" in config:
        config["multiKueue"]["workerLostTimeout"] = f"{LOST_S}s"
    return {**made, "managerConfig": {"controllerManagerConfigYaml": json.dumps(config)}}


@pytest.fixture(scope="module")
def clusters(planes: dict[str, ControlPlane], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two workers behind one queue."""
    with fleet(planes, ORIGIN, values("manager"), tmp_path_factory.mktemp("programs")) as found:
        yield found
