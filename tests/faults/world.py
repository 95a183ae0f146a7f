"""Nodes that do not agree on the run."""

from dataclasses import dataclass, field
from typing import Any

from tests.faults.injector import Injector, InjectorError
from tests.faults.lab import Lab, Run


@dataclass
class OtherPlan(Injector):
    """One node is started with another plan than the rest."""

    node: int = 1
    changes: dict[str, Any] = field(default_factory=dict)
    _differs: bool = False

    def plan(self, lab: Lab, node: int, document: dict[str, Any]) -> dict[str, Any] | None:
        if node != self.node:
            return document
        self._differs = any(document.get(key) != value for key, value in self.changes.items())
        return {**document, **self.changes}

    def prove(self, run: Run) -> str:
        if not self._differs or self.node not in run.launchers:
            raise InjectorError(f"node {self.node} was started with the plan of all others")
        return f"node {self.node} was started with {self.changes}"


@dataclass
class MissingNode(Injector):
    """One node is never started, and its name has no address, as that of a pod that was not scheduled."""

    node: int = 1

    def plan(self, lab: Lab, node: int, document: dict[str, Any]) -> dict[str, Any] | None:
        if node != self.node:
            return document
        hosts = lab.home / "hosts"
        known = [line for line in hosts.read_text().splitlines() if line.split()[-1] != lab.host(node)]
        hosts.write_text("\n".join(known) + "\n")
        return None

    def prove(self, run: Run) -> str:
        if self.node in run.launchers:
            raise InjectorError(f"node {self.node} was started")
        return f"node {self.node} was never started"
