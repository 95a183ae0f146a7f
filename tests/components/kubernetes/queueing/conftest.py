from collections.abc import Mapping
from typing import Any

import pytest

from tests.components.kubernetes.queueing import definitions


@pytest.fixture(scope="session")
def crds() -> Mapping[str, dict[str, Any]]:
    """Kind -> the OpenAPI schema of v1beta2, from the pinned module."""
    return definitions.crds()
