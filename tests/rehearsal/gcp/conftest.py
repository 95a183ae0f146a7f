"""An emulated Google Cloud of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.core.schema import Schemas
from tests.rehearsal.driver import CACHE
from tests.rehearsal.gcp.harness import Driver


@pytest.fixture(scope="session")
def schemas() -> Iterator[Schemas]:
    schemas = Schemas("gcp", CACHE)
    yield schemas
    schemas.close()


@pytest.fixture
def google(tmp_path: Path, schemas: Schemas) -> Iterator[Driver]:
    driver = Driver(tmp_path, schemas)
    yield driver
    driver.state.close()
