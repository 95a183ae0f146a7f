"""The schemas of the Google package, read once."""

from collections.abc import Iterator

import pytest

from rehearsal.core.schema import Schemas
from tests.rehearsal.driver import CACHE


@pytest.fixture(scope="session")
def schemas() -> Iterator[Schemas]:
    found = Schemas("gcp", CACHE)
    yield found
    found.close()
