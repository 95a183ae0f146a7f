"""A separate account for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.core.schema import Schemas
from tests.rehearsal.aws.harness import Driver
from tests.rehearsal.driver import CACHE


@pytest.fixture(scope="module")
def schemas() -> Iterator[Schemas]:
    schemas = Schemas("aws", CACHE)
    yield schemas
    schemas.close()


@pytest.fixture
def aws(tmp_path: Path, schemas: Schemas) -> Iterator[Driver]:
    aws = Driver(tmp_path, schemas)
    yield aws
    aws.state.close()
