"""The environment of tests of commands."""

import pytest


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output goes to a file, as wide as its lines, whatever the width of the test report."""
    monkeypatch.delenv("COLUMNS", raising=False)
