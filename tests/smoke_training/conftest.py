"""Fixtures of tests of whole jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.smoke_training.jobs import Job, bundle


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it reaches a cluster."""
    return bundle(tmp_path_factory.mktemp("zip"))


@pytest.fixture
def jobs() -> Iterator[list[Job]]:
    """Jobs to clean up whatever a test does."""
    started: list[Job] = []
    yield started
    for job in started:
        job.end()
