"""The services of a rehearsal in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rehearsal.jobs.aws.account import Account


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    found = Account(tmp_path)
    yield found
    found.services.stop()
    found.state.close()
