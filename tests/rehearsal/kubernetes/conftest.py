"""Fixtures: a rehearsal home with one EKS cluster, checked for processes that survive."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.kubernetes.cloud import KubernetesCloud
from tests.rehearsal.kubernetes.harness import ARN, ENDPOINT, Rehearsed


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Schemas]:
    found = Schemas("kubernetes", Path(".trainstack/cache/schemas"))
    yield found
    found.close()


@pytest.fixture
def rehearsed(tmp_path: Path, schemas: Schemas) -> Iterator[Rehearsed]:
    home = tmp_path / "home"
    state = State(home / "state.sqlite")
    made = Rehearsed(state, home, KubernetesCloud(state, schemas, home))
    made.aws(
        "aws:eks/cluster:Cluster", "dev", {"name": "dev"}, {"name": "dev", "arn": ARN, "endpoint": ENDPOINT}
    )
    made.node_group()
    yield made
    made.cloud.stop()
    left = made.processes()
    assert not left, f"processes survive: {left}"
    state.close()
