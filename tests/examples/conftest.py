"""Templates as jobs: the folder that a user would pack, around it what runs in every managed job."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

from tests.agents.managed_job.conftest import archive, store
from tests.agents.managed_job.managed import Managed, clean

__all__ = ["archive", "store"]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Make = Callable[..., Managed]
Result = subprocess.CompletedProcess[str]


@pytest.fixture
def template(archive: Path, tmp_path: Path) -> Iterator[Make]:
    """Makes a job of a template, with a home of its own below the test's folder."""
    made: list[Managed] = []

    def make(name: str, script: str, home: str = "ml", **environment: str) -> Managed:
        code = tmp_path / f"code-{home}"
        shutil.copytree(EXAMPLES / name, code, ignore=shutil.ignore_patterns("__pycache__"))
        made.append(Managed(archive, tmp_path / home, script, code, **environment))
        return made[-1]

    yield make
    for one in made:
        one.end()


def run(script: Path, home: Path, *arguments: str) -> Result:
    """A script alone, without a job around it."""
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=home,
        env={**clean(os.environ), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def variables(store: MlflowClient) -> dict[str, str]:
    return {"MLFLOW_TRACKING_URI": store.tracking_uri}


def interrupt(job: Managed, step: int, how: signal.Signals, rank: int = 0) -> None:
    """Have the service act exactly after a step of the first attempt: who watches the log comes too late.

    SIGTERM goes to the wrapper alone, the leader of its group, and the script waits until it has arrived.
    """
    path, mark = job.code / job.script, str(job.home / "interrupted")
    line = "        done += 1\n"
    act = "os.kill" if how is signal.SIGTERM else "os.killpg"
    more = (
        f"        here = done == {step} and os.environ.get('RANK', '0') == '{rank}'\n"
        f"        if here and not Path({mark!r}).exists():\n"
        f"            Path({mark!r}).touch()\n"
        f"            {act}(os.getpgid(os.getppid()), {int(how)})\n"
        "            while not stop.asked:\n"
        "                __import__('time').sleep(0.01)\n"
    )
    text = path.read_text()
    assert text.count(line) == 1
    path.write_text(text.replace(line, line + more))


def losses(said: str, name: str = "loss") -> dict[int, float]:
    """The lines `step 10 loss 2.3` of a log."""
    words = (line.split() for line in said.splitlines() if line.startswith("step "))
    return {int(word[1]): float(word[3]) for word in words if word[2] == name}
