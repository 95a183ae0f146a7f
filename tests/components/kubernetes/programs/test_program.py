"""A program in a pod: what its ConfigMap holds is what runs, without anything that is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from components.kubernetes.accounting import gpu_ledger
from components.kubernetes.capacity import capacity_windows
from components.kubernetes.clusters import dispatching, fencing
from components.kubernetes.definitions import install
from components.kubernetes.definitions.schemas import schemas
from components.kubernetes.idle import idle_gpus
from components.kubernetes.monitoring import stack
from components.kubernetes.programs.program import ROOT, PodSettings, Program, config_data, pod
from components.kubernetes.validation import watcher
from components.kubernetes.waiting import webhooks

DRY_RUN = Program("agents.waiting.dry_run")
# Every program of a stack but the one that makes logins, which takes texts from elsewhere.
PROGRAMS = [
    gpu_ledger.PROGRAM,
    capacity_windows.PROGRAM,
    dispatching.PROGRAM,
    fencing.PROGRAM,
    idle_gpus.PROGRAM,
    stack.ALERT_LOG_PROGRAM,
    stack.LOGIN_PROGRAM,
    watcher.PROGRAM,
    webhooks.PROGRAM,
    *(install.program(chart) for chart in schemas()),
]


def mounted(program: Program, folder: Path) -> None:
    """The program's files where the pod's volume puts them."""
    running = PodSettings("c", "image", "account", "config", {}, {}, 64)
    (volume, _) = pod(program, running, "Never")["volumes"]
    data = {name: text.encode() for name, text in config_data(program).items()} | dict(program.data)
    for item in volume["config_map"]["items"]:
        path = folder / item["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data[item["key"]])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.module)
def test_what_is_mounted_is_all_that_it_needs(program: Program, tmp_path: Path) -> None:
    mounted(program, tmp_path)
    done = subprocess.run(
        # -S: without the installed packages, this tree's among them.
        [sys.executable, "-S", "-c", f"import {', '.join([program.module, *program.imports])}"],
        cwd=tmp_path, env={}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_module_runs_from_its_folder() -> None:
    running = PodSettings("waits", "image", "account", "config", {"seconds": "5"}, {"A": "b"}, 64)
    (container,) = pod(DRY_RUN, running, "Never", ports=[])["containers"]
    assert container["command"] == ["python", "-m", DRY_RUN.module]
    assert container["working_dir"] == ROOT and container["ports"] == []
    assert container["args"][:2] == ["--seconds", "5"] and container["args"][2] == "--account"


def test_other_text_is_another_program() -> None:
    given = Program(DRY_RUN.module, files={"agents.waiting.more": "A = 1\n"})
    other = Program(DRY_RUN.module, files={"agents.waiting.more": "A = 2\n"})
    assert len({DRY_RUN.digest, given.digest, other.digest}) == 3
    assert Program(DRY_RUN.module).digest == DRY_RUN.digest
