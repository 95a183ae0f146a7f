"""Small jobs for tests and benchmarks: real launchers on loopback that run only some phases."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smoke_training import evidence, verdict
from smoke_training.evidence import Evidence
from smoke_training.model import Check, Judgement
from smoke_training.plan import parse
from tests.smoke_training.samples import document

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class SmallJob:
    """Nodes on one machine with `ranks` ranks each; their folders lie below `home`."""

    home: Path
    phases: Sequence[str]
    nodes: int = 2
    ranks: int = 1
    plan: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.document = document(
            nodes=self.nodes,
            ranks_per_node=self.ranks,
            gpus_per_node=0,
            phases=list(self.phases),
            **self.plan,
        )
        self.processes: list[subprocess.Popen[str]] = []

    def start(self) -> "SmallJob":
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "plan.json").write_text(json.dumps(self.document))
        with socket.socket() as probe:
            probe.bind(("127.77.0.3", 0))
            port = probe.getsockname()[1]
        for index in range(self.nodes):
            own = {
                **{k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")},
                "SMOKE_DEVICE": "cpu",
                "MASTER_ADDR": "127.77.0.3",
                "MASTER_PORT": str(port),
                "WORK_DIR": str(self.home),
                "NODE_RANK": str(index),
                "HOSTNAME": f"smoke-{index}",
                "PYTHONPATH": str(ROOT),
                **self.environment,
            }
            command = [sys.executable, "-m", "smoke_training", "node", "--plan", str(self.home / "plan.json")]
            self.processes.append(
                subprocess.Popen(
                    command, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/"
                )
            )
        return self

    def finish(self, timeout: float = 200) -> str:
        """Wait for all nodes; what they said."""
        try:
            return "".join(process.communicate(timeout=timeout)[0] for process in self.processes)
        finally:
            for process in self.processes:
                with contextlib.suppress(OSError):
                    process.send_signal(signal.SIGKILL)

    def samples(self) -> list[dict[str, Any]]:
        found = []
        for name in ("result.samples.jsonl", "node-0/evidence.jsonl"):
            path = self.home / name
            if path.exists():
                found = [json.loads(line) for line in path.read_text().splitlines()]
                break
        return found

    def found(self) -> Evidence:
        return evidence.parse(json.dumps(line) for line in self.samples())

    def judged(self) -> Judgement:
        return verdict.judge(parse(json.dumps(self.document)), self.found())

    def result(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.home / "result.json").read_text())
        return loaded


def check(judged: Judgement, name: str) -> Check:
    return next(item for item in judged.checks if item.id == name)
