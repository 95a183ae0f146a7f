"""Prometheus itself, on samples of ours, and its tools."""

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.kubernetes.monitoring import rules
from rehearsal.controlplane import binaries
from rehearsal.controlplane.processes import free_ports
from tests.components.kubernetes.monitoring.samples import openmetrics

_PATIENCE_S = 60.0
_FIRING = 'ALERTS{alertname=~"Watchdog|BudgetHalfUsed|GpuXidError", alertstate="firing"}'


def tools() -> Mapping[str, Path]:
    """The paths of promtool, amtool and prometheus; skips where they are not there."""
    found = binaries.checkers()
    if found is None:
        pytest.skip("Prometheus is not built here: `make binaries` builds it, and says why it cannot")
    return found


def run(tool: str, *arguments: str | Path, cwd: Path | None = None) -> str:
    """What a tool says; fails with its words when it does."""
    command = [tools()[tool], *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rule_files(folder: Path) -> list[Path]:
    """The rules as they are deployed, one file for each layer."""
    made = []
    for layer in rules.layers():
        path = folder / f"{layer}.yaml"
        path.write_text(yaml.safe_dump({"groups": rules.groups(layer)}), encoding="utf-8")
        made.append(path)
    return made


class Asked:
    """A Prometheus that runs."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"

    def answer(self, query: str) -> list[dict[str, Any]]:
        """The result of a query now. Raises OSError while it does not answer."""
        asked = f"{self.address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return list(json.load(answer)["data"]["result"])


@contextmanager
def running(folder: Path, more: str = "") -> Iterator[Asked]:
    """One with the samples and the rules, once it has evaluated these; `more`: samples of other metrics."""
    recorded, data = folder / "samples.om", folder / "data"
    # Not of the last minute: the server evaluates at its own time, and looks back five.
    samples = openmetrics(int(time.time())).replace("# EOF", f"{more}# EOF")
    recorded.write_text(samples, encoding="utf-8")
    run("promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", recorded, data)
    files = [str(path) for path in rule_files(folder)]
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump({"global": {"evaluation_interval": "1s"}, "rule_files": files}))
    (port,) = free_ports(1)
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [
                tools()["prometheus"],
                f"--config.file={config}",
                f"--storage.tsdb.path={data}",
                f"--web.listen-address=127.0.0.1:{port}",
                # Records of the rules are of now, and the samples of a moment before.
                "--storage.tsdb.retention.time=30d",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            asked = Asked(port)
            _await(asked, folder / "log")
            yield asked
        finally:
            server.terminate()
            server.wait()


def _await(asked: Asked, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            if asked.answer("trainstack:workloads_finished:day") and len(asked.answer(_FIRING)) == 3:
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)
