"""Interface of fault injectors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.faults.lab import Lab, Run


class InjectorError(RuntimeError):
    """The fault was not there: the run proves nothing about detection and must not be counted."""


class Injector:
    """One fault. Whatever it does is shown by a counter or probe that the product has no part in.

    `install` comes before the nodes start and proves what can be proven by then; `watch` is called every few
    milliseconds while they run; `prove` comes after, returns one line of evidence that the fault bit during
    the run, and raises `InjectorError` if it did not. `remove` undoes, whatever happened.
    """

    def install(self, lab: Lab) -> None:
        """Put the fault in place."""

    def environment(self, lab: Lab, node: int) -> Mapping[str, str | None]:
        """What to change in the environment of one node's launcher; None takes a variable away."""
        return {}

    def plan(self, lab: Lab, node: int, document: dict[str, Any]) -> dict[str, Any] | None:
        """The plan that one node is started with; None starts no such node."""
        return document

    def watch(self, run: Run) -> None:
        """Do what has to happen while the nodes run."""

    def prove(self, run: Run) -> str:
        """Evidence that the fault bit during the run."""
        raise NotImplementedError

    def remove(self, lab: Lab) -> None:
        """Undo the fault."""


def plugin_path(name: str) -> Path:
    """Folder of a plugin that Python loads by itself (`sitecustomize`) once it is on PYTHONPATH."""
    return Path(__file__).resolve().parent / "plugins" / name
