from collections.abc import Mapping
from typing import Any

import pytest

from tests.components.graph import Graph
from tests.components.kubernetes.validation.validations import args, smoke


@pytest.fixture(scope="module")
def made() -> Graph:
    return smoke(args())


@pytest.fixture(scope="module")
def job(made: Graph) -> Mapping[str, Any]:
    return made.find("Job", "-job")


@pytest.fixture(scope="module")
def pod(job: Mapping[str, Any]) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = job["spec"]["template"]["spec"]
    return spec
