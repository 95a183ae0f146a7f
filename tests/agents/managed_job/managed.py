"""A job as a managed service runs it: the zip of jobs around some code, with a folder like /opt/ml."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.launchers.bundle import NAME, of_jobs

SUBMITTED = {
    "TRAINSTACK_STACK": "small-aws",
    "TRAINSTACK_RUN": "run-1",
    "TRAINSTACK_OWNER": "anna",
    "TRAINSTACK_PERSON": "anna",
    "TRAINSTACK_TEAM": "research",
    "TRAINSTACK_TASK": "finetune",
    "TRAINSTACK_DATASET": "sentences-1",
    "TRAINSTACK_CODE_VERSION": "0123456789abcdef0123456789abcdef01234567",
    "TRAINSTACK_COST_PER_HOUR": "36",
    "MLFLOW_EXPERIMENT_NAME": "research",
}


def zipped(folder: Path) -> Path:
    """The very zip that reaches jobs."""
    found = folder / NAME
    found.write_bytes(of_jobs().content)
    return found


@dataclass
class Node:
    """A container that runs, and what it says."""

    process: subprocess.Popen[str]

    def line(self, beginning: str) -> str:
        """The next line that begins like this; everything before it has been read."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(beginning):
                return line
        raise AssertionError(f"the job ended before it said {beginning!r}")

    def finish(self, limit_s: float = 240.0) -> tuple[int, str]:
        """The exit code and what was said since the last look; nothing of it lives on."""
        try:
            said, _ = self.process.communicate(timeout=limit_s)
            return self.process.returncode, said
        finally:
            self.kill()

    def terminate(self) -> None:
        """What the service does first: SIGTERM to the process of the container."""
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """What it does then: SIGKILL to all of them."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Managed:
    """One job. Its folders outlive its containers, as the service keeps checkpoints."""

    def __init__(self, archive: Path, home: Path, script: str, code: Path, **environment: str) -> None:
        self.archive, self.code, self.script = archive, code, script
        self.home, self.environment = home, environment
        self.nodes: list[Node] = []

    def base(self, host: str = "algo-1") -> Path:
        return self.home / host

    def start(
        self,
        arguments: Sequence[str] = (),
        hosts: Sequence[str] = ("algo-1",),
        host: str = "algo-1",
        python: Sequence[str] = (),
        stdin: int = subprocess.DEVNULL,
    ) -> Node:
        """Start the container of one host."""
        config = self.base(host) / "input" / "config"
        config.mkdir(parents=True, exist_ok=True)
        place = {
            "current_host": host, "hosts": list(hosts), "current_instance_type": "ml.g6.xlarge",
            "network_interface_name": "eth0",
        }  # fmt: skip
        (config / "resourceconfig.json").write_text(json.dumps(place))
        environment = {
            **clean(os.environ), **SUBMITTED, "TRAINING_JOB_NAME": "small-aws-anna-1", "OMP_NUM_THREADS": "1",
            "TRAINSTACK_SCRIPT": self.script, "TRAINSTACK_ARGUMENTS": json.dumps(list(arguments)),
            "SAGEMAKER_BASE_DIR": str(self.base(host)), **self.environment,
        }  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, *python, str(self.archive), "job"],
            env=environment,
            cwd=self.code,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.nodes.append(Node(process))
        return self.nodes[-1]

    def run(self, *arguments: str, python: Sequence[str] = ()) -> tuple[int, str]:
        """Run a job of one host to its end."""
        return self.start(arguments, python=python).finish()

    def end(self) -> None:
        for node in self.nodes:
            if node.process.poll() is None:
                node.kill()

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.base() / "output" / "data" / "run.json").read_text())
        return found

    def failure(self, host: str = "algo-1") -> str:
        """The reason that the service would show; empty where it shows none."""
        path = self.base(host) / "output" / "failure"
        return path.read_text() if path.exists() else ""

    @property
    def checkpoints(self) -> Path:
        return self.base() / "checkpoints"


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would steer a job."""
    ours = ("TRAINSTACK_", "MLFLOW_", "SAGEMAKER_", "PIP_", "CLUSTER_SPEC")
    return {name: value for name, value in environment.items() if not name.startswith(ours)}
