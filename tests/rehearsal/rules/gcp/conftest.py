"""An emulated Google Cloud of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.rehearsal.schema import Schemas
from tests.rehearsal.rules.driver import CACHE
from tests.rehearsal.rules.gcp.harness import Driver


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
