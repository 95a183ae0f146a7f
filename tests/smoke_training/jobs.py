"""Jobs of several launchers on loopback, as a cluster would start them, for tests of real process groups."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

from infra.launchers import bundle as zipped
from smoke_training import evidence
from smoke_training.evidence import Evidence
from smoke_training.runtime import heartbeat, processes
from smoke_training.verdict_record import readable
from tests.smoke_training.result_schema import RESULT_SCHEMA
from tests.smoke_training.samples import document

SOURCES = Path(__file__).resolve().parents[2] / "smoke_training"
ADDRESS = "127.77.0.2"


def bundle(folder: Path) -> Path:
    """The package in the very zip that reaches a cluster."""
    found = folder / "smoke_training.zip"
    found.write_bytes(zipped.shipped().content)
    return found


def ranks_of(pids: Collection[int]) -> dict[int, heartbeat.Beat]:
    """The last heartbeat of every rank among these processes, by rank."""
    folders = {processes.environment_of(pid).get(heartbeat.FOLDER) for pid in pids} - {None}
    paths = [path for folder in folders for path in sorted(Path(str(folder)).glob("rank-*"))]
    beats = {path: beat for path in paths if (beat := heartbeat.read(path)) is not None}
    return {int(path.name.split("-")[1]): beat for path, beat in beats.items() if beat.pid in pids}


@dataclass
class Node:
    """One launcher process of a job with its files."""

    process: subprocess.Popen[str]
    termination: Path

    def finish(self, timeout: float) -> tuple[int, list[dict[str, Any]], str]:
        output, _ = self.process.communicate(timeout=timeout)
        events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        return self.process.returncode, events, output

    def message(self) -> str:
        """Its termination message in the form for people."""
        return readable(self.termination.read_text())


class Job:
    """A job of one rank per node; `plans` and `environments` say what differs on some nodes."""

    def __init__(
        self,
        archive: Path,
        home: Path,
        *,
        start: Sequence[int] = (0, 1),
        plans: Mapping[int, Mapping[str, Any]] | None = None,
        environments: Mapping[int, Mapping[str, str]] | None = None,
        plan: Mapping[str, Any] | None = None,
        **environment: str,
    ) -> None:
        self.home = home
        self._changes = (plan or {}, plans or {}, environments or {})
        self.port = port_pair()
        plain = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")}
        self._shared = {
            **plain, "SMOKE_DEVICE": "cpu", "MASTER_ADDR": ADDRESS, "MASTER_PORT": str(self.port),
            "WORK_DIR": str(home), **environment,
        }  # fmt: skip
        self.began = time.monotonic()
        self.nodes: dict[int, Node] = {}
        for index in start:
            self.start(archive, index)

    def start(self, archive: Path, index: int) -> None:
        """Start the launcher of one node."""
        plan, plans, environments = self._changes
        where, termination = self.home / f"plan-{index}.json", self.home / f"termination-{index}"
        where.write_text(json.dumps(document(**{**plan, **plans.get(index, {})})))
        own = {
            "NODE_RANK": str(index),
            "HOSTNAME": f"smoke-ab-{index}",
            "TERMINATION_MESSAGE_PATH": str(termination),
            **environments.get(index, {}),
        }
        process = subprocess.Popen(
            [sys.executable, str(archive), "node", "--plan", str(where)],
            env={**self._shared, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
        )
        self.nodes[index] = Node(process, termination)

    def finish(self, timeout: float = 200) -> str:
        """Wait for all launchers; what they said. Nothing of the job lives on."""
        try:
            return "".join(node.process.communicate(timeout=timeout)[0] for node in self.nodes.values())
        finally:
            self.end()

    def found(self) -> Evidence:
        """The evidence beside the result."""
        return evidence.parse((self.home / "result.samples.jsonl").read_text().splitlines())

    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.home / "result.json").read_text())
        jsonschema.Draft202012Validator(RESULT_SCHEMA).validate(found)
        return found

    def processes(self) -> list[int]:
        """Live processes whose command line names this job's folder, launchers excepted."""
        mark, launchers = str(self.home).encode(), {node.process.pid for node in self.nodes.values()}
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in launchers:
                with contextlib.suppress(OSError):
                    if mark in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
        return found

    def ranks(self, rank: int, phase: str = "") -> list[int]:
        """The process of a rank, if it lives and is in the phase (by default: in any)."""
        found = ranks_of(self.processes()).get(rank)
        return [found.pid] if found and phase in ("", found.phase) else []

    def measured(self, kind: str) -> bool:
        """Whether rank 0 has delivered evidence of a kind."""
        with contextlib.suppress(OSError):
            return f'"kind": "{kind}"' in (self.home / "node-0" / "evidence.jsonl").read_text()
        return False

    def end(self) -> None:
        """Leave nothing behind, whatever the test did."""
        for pid in self.processes() + [
            n.process.pid for n in self.nodes.values() if n.process.poll() is None
        ]:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def port_pair() -> int:
    """The first of two neighbouring ports free on every address.

    torch's store listens on all addresses, and the kernel assigns ports from 32768 on to any process: of two
    hundred connections on this machine one would sooner or later have the port before the job does.
    """
    while True:
        first = random.randrange(20000, 32000, 2)
        with contextlib.suppress(OSError), socket.socket() as one, socket.socket() as other:
            one.bind(("", first))
            other.bind(("", first + 1))
            return first


def partial_job(
    archive: Path, home: Path, phases: Sequence[str], nodes: int = 2, ranks: int = 1, **plan: Any
) -> Job:
    """A job of some phases only; the folders of its nodes lie below `home`."""
    home.mkdir(parents=True, exist_ok=True)
    size = {"nodes": nodes, "ranks_per_node": ranks, "gpus_per_node": 0, "phases": list(phases)}
    return Job(archive, home, start=range(nodes), plan={**size, **plan})


def until(condition: Callable[[], object], limit_s: float = 60.0) -> None:
    """Wait for a condition; AssertionError when it does not come true in time."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "what the test waited for did not happen"
        time.sleep(0.02)


def check(result: dict[str, Any], name: str) -> dict[str, Any]:
    """One check of a result by its id."""
    found: dict[str, Any] = next(item for item in result["checks"] if item["id"] == name)
    return found
