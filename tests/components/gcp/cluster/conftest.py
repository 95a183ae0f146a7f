from collections.abc import Mapping
from typing import Any

import pytest

from tests.components.gcp.cluster.clusters import cluster
from tests.components.graph import Graph


@pytest.fixture(scope="module")
def made() -> Graph:
    return cluster()


@pytest.fixture(scope="module")
def gke(made: Graph) -> Mapping[str, Any]:
    return made.find("container/cluster:Cluster")
