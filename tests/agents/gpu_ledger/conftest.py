"""Fixtures of the ledger's tests."""

from collections.abc import Iterator

import pytest

from tests.agents.gpu_ledger.metering import Prometheus, answering


@pytest.fixture
def prometheus() -> Iterator[Prometheus]:
    """A Prometheus without any series yet."""
    with answering() as said:
        yield said
