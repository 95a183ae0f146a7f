"""Kill points: kill one process of a run at a chosen operation, and check the next runs."""

import json
import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from infra.engine.install import require
from rehearsal.client import Rehearsal
from rehearsal.core.state import State
from rehearsal.recovery import recover

PROJECT, STACK = "killed", "dev"
_PROGRAM = Path(__file__).with_name("killed_program.py")


@dataclass
class Kill:
    """One kill point: process, operation, and before or after the commit of the cloud."""

    operation: str
    victim: str
    kind: str
    nth: int

    def __str__(self) -> str:
        return f"{self.operation} {self.kind} {self.victim} @{self.nth}"


@dataclass
class Stage:
    """A small project in a rehearsal of its own."""

    folder: Path
    rehearsal: Rehearsal
    kills: list[Kill] = field(default_factory=list)
    runs: int = 0

    def prepare(self) -> None:
        """Write the project and create its stack."""
        project = self.folder / "project"
        project.mkdir()
        (project / "Pulumi.yaml").write_text(f"name: {PROJECT}\nruntime: python\n")
        (project / "__main__.py").write_text(_PROGRAM.read_text())
        self._pulumi("stack", "init", STACK)

    def run(self, operation: str, kill: Kill | None = None) -> bool:
        """`up` or `destroy`, perhaps with a kill; returns whether it succeeded."""
        recover(self.rehearsal, PROJECT, STACK)
        fault = {"on": "*", "operation": {"up": "create", "destroy": "delete"}[operation]}
        if kill:
            fault |= {"kind": kill.kind, "victim": kill.victim}
        self.rehearsal.set_faults({"faults": [{**fault, "nth": kill.nth}]} if kill else {})
        self.runs += 1
        done = self._pulumi(operation, "--yes", "--skip-preview", check=kill is None)
        return done.returncode == 0

    def records(self) -> list[tuple[str, str, str]]:
        """(URN, type, id) of all resources in the clouds, except those that services made by themselves."""
        state = State(self.rehearsal.home / "state.sqlite")
        try:
            return sorted((one.urn, one.type, one.id) for one in state.find() if one.urn)
        finally:
            state.close()

    def leftovers(self) -> int:
        """Number of resources in the clouds, including hidden ones."""
        return int(sum(self.rehearsal.status()["resources"].values()))

    def known(self) -> list[tuple[str, str, str]]:
        """(URN, type, id) of all resources in the engine's state, including those being deleted."""
        return sorted(
            (one["urn"], one["type"], one["id"])
            for one in self._deployment().get("resources", [])
            if one.get("custom") and not one["type"].startswith("pulumi:")
        )

    def graph(self) -> list[tuple[str, tuple[str, ...]]]:
        """Every URN with its dependencies."""
        return sorted(
            (one["urn"], tuple(sorted(one.get("dependencies", []))))
            for one in self._deployment().get("resources", [])
        )

    def pending(self) -> int:
        """Number of operations that the engine's state has as pending."""
        return len(self._deployment().get("pending_operations") or [])

    def _deployment(self) -> dict[str, list[dict[str, str]]]:
        path = self.rehearsal.home / "state" / ".pulumi" / "stacks" / PROJECT / f"{STACK}.json"
        return dict(json.loads(path.read_text())["checkpoint"].get("latest") or {})

    def _pulumi(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        cli = require()
        environment = {
            **os.environ,
            **self.rehearsal.environment(),
            "PATH": f"{cli.folder}{os.pathsep}{os.environ['PATH']}",
            "AWS_REGION": "us-east-1",
            "PULUMI_STACK": STACK if arguments[0] != "stack" else "",
        }
        done = subprocess.run(
            [cli.path, *arguments, "--non-interactive"],
            cwd=self.folder / "project",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if check and done.returncode:
            kills = ", ".join(map(str, self.kills[-3:]))
            raise AssertionError(f"after {kills}: {done.stdout}{done.stderr}")
        return done


def play(stage: Stage, points: int, seed: int) -> Iterator[str]:
    """Kill so many times; yields problems. Every few kills the run is finished and checked."""
    chance = random.Random(seed)
    stage.run("up")
    graph, total = stage.graph(), len(stage.records())
    stage.run("destroy")
    while len(stage.kills) < points:
        for operation in ("up", "destroy"):
            for _ in range(chance.randint(1, 4)):
                exist = len(stage.records())
                left = total - exist if operation == "up" else exist
                if left < 1 or len(stage.kills) >= points:
                    break
                victims = ["daemon", "engine", "provider", *(["program"] if operation == "up" else [])]
                kind = chance.choice(["crash-before", "crash-after"])
                kill = Kill(operation, chance.choice(victims), kind, chance.randint(1, left))
                if not stage.run(operation, kill):
                    stage.kills.append(kill)
            last = ", ".join(map(str, stage.kills[-4:]))
            stage.run(operation)
            yield from (f"after {last}: {complaint}" for complaint in _complaints(stage, operation, graph))


def _complaints(stage: Stage, operation: str, graph: list[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    if stage.pending():
        yield f"{stage.pending()} operations are still pending"
    if operation == "destroy":
        if stage.leftovers():
            yield f"left behind: {stage.records() or stage.leftovers()}"
        return
    if stage.graph() != graph:
        yield "the graph is another one"
    clouds, engine = stage.records(), stage.known()
    if clouds != engine:
        orphans, lost = set(clouds) - set(engine), set(engine) - set(clouds)
        yield f"only in the clouds: {orphans}; only in the engine: {lost}"
