"""Overhead of the wrapper of a managed job over the bare process, alternating in one run.

    python benchmarks/jobs/overhead.py [rounds]

Three ways to run a script: bare, in the wrapper, in the wrapper with a run in MLflow (a store in files, so
that no server takes part). The script is one that does nothing, which shows the seconds that are added, and
the template finetune, which shows the ratio. Wall time, and processor time of all processes, which hardly
feels neighbours. Medians; those of ratios are over rounds, each with one run of every way, in turns.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from infra.launchers.bundle import of_jobs

ROOT = Path(__file__).resolve().parents[2]
FINETUNE = ["--base-steps", "100", "--steps", "200"]
WAYS = ("bare", "wrapper", "wrapper with MLflow")


@dataclass(frozen=True)
class Took:
    """Seconds of one run: of the wall, of processors, and until the script's first line."""

    wall: float
    cpu: float
    first: float


def run(way: str, archive: Path, code: Path, script: str, arguments: list[str]) -> Took:
    with tempfile.TemporaryDirectory() as home:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
        environment = {
            **kept, "OMP_NUM_THREADS": "1", "SAGEMAKER_BASE_DIR": home, "TRAINSTACK_SCRIPT": script,
            "TRAINSTACK_ARGUMENTS": json.dumps(arguments), "TRAINSTACK_CHECKPOINTS": f"{home}/checkpoints",
            "TRAINSTACK_MODEL": f"{home}/model",
        }  # fmt: skip
        if way == "wrapper with MLflow":
            environment |= {"MLFLOW_TRACKING_URI": f"file://{home}/mlruns", "MLFLOW_ALLOW_FILE_STORE": "true"}
        command = [sys.executable, str(archive), "job"]
        if way == "bare":
            command = [sys.executable, "-u", script, *arguments]
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=code, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout is not None
        first = 0.0
        for line in process.stdout:
            if not first and not line.startswith("trainstack: "):
                first = time.perf_counter() - began
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        return Took(time.perf_counter() - began, used.ru_utime + used.ru_stime, first)


def compared(archive: Path, code: Path, script: str, arguments: list[str], rounds: int) -> None:
    found: dict[str, list[Took]] = {way: [] for way in WAYS}
    for number in range(rounds + 1):
        for way in WAYS[number % 3 :] + WAYS[: number % 3]:
            took = run(way, archive, code, script, arguments)
            if number:  # the first round warms the disk
                found[way].append(took)
    print(f"{script}, {rounds} rounds: median (min .. max)")
    for way in WAYS:
        print(f"  {way}: " + ", ".join(_figure(part, found[way]) for part in ("wall", "cpu", "first")))
    for way in WAYS[1:]:
        for part in ("wall", "cpu"):
            pairs = [
                (getattr(one, part), getattr(bare, part))
                for one, bare in zip(found[way], found["bare"], strict=True)
            ]
            more, ratio = (
                statistics.median(values) for values in ([a - b for a, b in pairs], [a / b for a, b in pairs])
            )
            print(f"  {way}, {part} time beside bare: {more:+.2f} s, ratio {ratio:.2f}")


def _figure(part: str, runs: list[Took]) -> str:
    values = [getattr(one, part) for one in runs]
    name = {"wall": "wall", "cpu": "processors", "first": "to the first line"}[part]
    return f"{name} {statistics.median(values):.2f} s ({min(values):.2f} .. {max(values):.2f})"


def main(rounds: int) -> None:
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as scratch:
        archive, code = Path(scratch) / "smoke_training.zip", Path(scratch) / "code"
        archive.write_bytes(of_jobs().content)
        shutil.copytree(ROOT / "examples" / "finetune", code)
        (code / "nothing.py").write_text("print('here')\n")
        compared(archive, code, "nothing.py", [], rounds)
        compared(archive, code, "train.py", FINETUNE, rounds)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
