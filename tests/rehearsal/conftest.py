"""An engine with our launchers and a home of its own for each test."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pulumi import automation

from infra.engine import install
from rehearsal.client import Rehearsal
from tests.rehearsal.frugal import FrugalStack, select

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def engine() -> Path:
    """The folder whose `bin` holds the Pulumi CLI."""
    return Path(install.require().path).parents[1]


@pytest.fixture
def rehearsal(tmp_path: Path) -> Iterator[Rehearsal]:
    # The schema cache is shared by all tests, as it is by all rehearsals of a checkout.
    cache = ROOT / ".trainstack" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    (tmp_path / "cache").symlink_to(cache)
    rehearsal = Rehearsal(tmp_path / "rehearsal")
    yield rehearsal
    rehearsal.stop()


@pytest.fixture
def stack(rehearsal: Rehearsal) -> Iterator[Callable[[Callable[[], None]], automation.Stack]]:
    """A stack whose program may be exchanged between updates."""
    found: list[FrugalStack] = []

    def selected(program: Callable[[], None]) -> automation.Stack:
        if not found:
            found.append(select(rehearsal.environment(), "rehearsed", "dev", program))
            found[0].set_config("aws:region", automation.ConfigValue("us-east-1"))
        return found[0].running(program)

    yield selected
    # A program that failed leaves coroutines behind. Collected at any later moment, such as while a module is
    # parsed, their messages end the interpreter (python/cpython#106905).
    gc.collect()
