"""The wrapper around real scripts, as the service starts it: from the zip, not as root's /opt/ml."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mlflow import MlflowClient

from agents.managed_job import run as around
from agents.managed_job.aws.folders import below
from tests.agents.managed_job.conftest import Make
from tests.agents.managed_job.managed import clean
from tests.agents.managed_job.wheels import wheel

HELLO = """
import importlib.util, json, os, sys
from smoke_training.names import IAP
names = ("TRAINSTACK_CHECKPOINTS", "TRAINSTACK_MODEL", "TRAINSTACK_OUTPUT")
seen = {name: os.environ[name] for name in names}
print(json.dumps({"arguments": sys.argv[1:], "folder": os.getcwd(), "seen": seen, "login": IAP,
    "agents": getattr(importlib.util.find_spec("agents"), "origin", None)}))
"""
WAITS = """
import signal, sys, time
def leave(*_):
    open("saved", "w").write("step 5")
    sys.exit(int(sys.argv[1]))
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
while True:  # a signal before `signal.pause` would be waited for in vain
    time.sleep(0.1)
"""


def test_a_script_finds_its_arguments_its_folders_and_our_package(job: Make) -> None:
    made = job(HELLO)
    code, said = made.run("--name", "two words", "--fast")
    assert code == 0, said
    found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    assert found["arguments"] == ["--name", "two words", "--fast"]
    assert found["folder"] == str(made.code)
    assert found["login"] and str(made.archive) not in str(found["agents"]), "the name is a user's"
    assert all(Path(folder).is_dir() for folder in found["seen"].values())
    document = made.document()
    assert (document["status"], document["exit_code"], document["reason"]) == ("FINISHED", 0, None)
    assert document["params"]["name"] == "two words" and document["machine"] == "ml.g6.xlarge"
    assert document["cost_usd"] == pytest.approx(document["duration_s"] * 36 / 3600)
    assert document["incomplete"] == [] and document["interruptions"] == 0
    assert document["mlflow"] == {
        "run_id": None, "recorded": False, "problems": ["MLFLOW_TRACKING_URI is not set"],
    }  # fmt: skip
    assert made.failure() == ""


def test_a_failure_keeps_its_exit_code_and_reports_its_reason(job: Make) -> None:
    made = job("import sys\nprint('begun')\ndef f():\n    raise ValueError('the loss is nan')\nf()\n")
    code, said = made.run()
    assert code == 1 and "ValueError: the loss is nan" in said, "the traceback is in the log, too"
    first, *rest = made.failure().splitlines()
    assert first == "train.py: exit code 1: ValueError: the loss is nan"
    assert rest[-1].strip() == "raise ValueError('the loss is nan')"
    assert made.document()["reason"] == made.failure()
    (made.code / "train.py").write_text("import sys; sys.exit(7)")
    assert made.run()[0] == 7
    assert made.failure() == "train.py: exit code 7", "nothing of the attempt before"


def test_a_script_killed_by_a_signal_has_the_exit_code_of_shells(job: Make) -> None:
    made = job("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert made.run()[0] == 128 + signal.SIGKILL
    assert "SIGKILL, exit code" in made.failure()


@pytest.mark.parametrize("code", [0, 143])
def test_sigterm_reaches_the_script_which_may_save(job: Make, code: int) -> None:
    made = job(WAITS)
    node = made.start([str(code)])
    node.line("ready")
    node.terminate()
    assert node.finish()[0] == code
    assert (made.code / "saved").read_text() == "step 5"
    document = made.document()
    assert (document["status"], document["exit_code"]) == ("KILLED", code)
    assert "stopped by SIGTERM" in document["reason"]
    assert bool(made.failure()) is bool(code)


def test_a_run_that_was_killed_goes_on_and_counts_it(job: Make) -> None:
    made = job(WAITS)
    node = made.start(["0"])
    node.line("ready")
    node.kill()
    assert made.document()["status"] == "RUNNING", "a reader sees that the run was not ended"
    (made.code / "train.py").write_text("print('done')")
    code, said = made.run()
    assert code == 0 and "after 1 interruptions" in said
    document = made.document()
    assert (document["status"], document["interruptions"]) == ("FINISHED", 1)


def test_a_damaged_record_of_earlier_attempts_costs_only_itself(job: Make) -> None:
    made = job("print('done')")
    made.checkpoints.mkdir(parents=True)
    (made.checkpoints / "trainstack-run.json").write_text('{"attempts": [')
    code, said = made.run()
    assert code == 0 and "earlier attempts" in said
    assert made.document()["interruptions"] == 0


def test_a_run_without_mandatory_fields_is_marked(job: Make) -> None:
    made = job("print('done')", TRAINSTACK_DATASET="", TRAINSTACK_CODE_VERSION="")
    code, said = made.run()
    assert code == 0 and "dataset, no code_version" in said
    assert made.document()["incomplete"] == ["dataset", "code_version"]


def test_what_cannot_be_run_is_refused_with_all_faults(job: Make) -> None:
    made = job("", TRAINSTACK_SCRIPT="train.sh")
    code, said = made.run()
    assert code == 3 and "Traceback" not in said
    rule = "must be a file of the folder, which has train.py"
    assert made.failure() == f"TRAINSTACK_SCRIPT: got 'train.sh'; {rule}"
    made = job("", TRAINSTACK_GPUS="x", TRAINSTACK_ARGUMENTS="x")
    assert made.run()[0] == 3
    assert len(made.failure().splitlines()) == 2


TORCHRUN = """
import os, torch.distributed as dist
dist.init_process_group("gloo")
os.write(1, f"joined {dist.get_rank()} {dist.get_world_size()}\\n".encode())  # whole, beside the other rank
dist.destroy_process_group()
"""


def test_a_shell_script_starts_once_for_a_node_and_torchrun_in_it_joins_all(job: Make) -> None:
    made = job(TORCHRUN, TRAINSTACK_SCRIPT="run.sh", TRAINSTACK_GPUS="2")
    (made.code / "run.sh").write_text('echo "shell $1"; torchrun train.py\n')
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    made.environment |= {"PATH": path}
    code, said = made.run("two words")
    assert code == 0, said
    assert said.count("shell two words") == 1
    assert {line for line in said.splitlines() if line.startswith("joined")} == {"joined 0 2", "joined 1 2"}


def test_a_script_with_relative_imports_runs_as_a_module(job: Make) -> None:
    made = job("", TRAINSTACK_SCRIPT="pkg/fit.py", TRAINSTACK_MODULE="pkg.fit")
    (made.code / "pkg").mkdir()
    (made.code / "pkg" / "model.py").write_text("SIZE = 7\n")
    (made.code / "pkg" / "fit.py").write_text(
        "from .model import SIZE\nimport sys\nprint(SIZE, sys.argv[1:])\n"
    )
    code, said = made.run("--lr", "1")
    assert code == 0 and "7 ['--lr', '1']" in said, said


def test_a_script_in_a_folder_imports_from_the_folder_of_the_run(job: Make) -> None:
    made = job("", TRAINSTACK_SCRIPT="scripts/fit.py")
    (made.code / "scripts").mkdir()
    (made.code / "model.py").write_text("SIZE = 7\n")
    (made.code / "scripts" / "fit.py").write_text("import model\nprint('size', model.SIZE)\n")
    code, said = made.run()
    assert code == 0 and "size 7" in said, said


def test_a_script_whose_name_begins_with_a_dash_is_no_option(job: Make) -> None:
    made = job("", TRAINSTACK_SCRIPT="-c.py")
    (made.code / "-c.py").write_text("print('ran')\n")
    code, said = made.run()
    assert code == 0 and "ran" in said, said


def test_requirements_are_installed_first(job: Make, tmp_path: Path) -> None:
    site = str(tmp_path / "site")
    text = "import demo; print('demo', demo.VALUE)"
    made = job(text, PIP_TARGET=site, PYTHONPATH=site, PIP_NO_INDEX="1")
    wheel(made.code)
    (made.code / "requirements.txt").write_text("./demo-1.0-py3-none-any.whl\n")
    code, said = made.run()
    assert code == 0, said
    assert "trainstack: installing requirements.txt" in said and "demo 42" in said


def test_requirements_that_cannot_be_installed_are_the_reason(job: Make) -> None:
    made = job("print('never')", PIP_NO_INDEX="1")
    (made.code / "requirements.txt").write_text("no-such-package==1.0\n")
    code, said = made.run()
    assert code != 0 and "never" not in said
    first = made.failure().splitlines()[0]
    assert first.startswith("pip install -r requirements.txt: exit code 1: ERROR: No matching distribution")
    assert made.document()["status"] == "FAILED"


def test_an_image_without_mlflow_trains_and_has_a_record(job: Make, store: MlflowClient) -> None:
    made = job("print('trained')", MLFLOW_TRACKING_URI=store.tracking_uri)
    code, said = made.run("--lr", "3e-4", python=["-S"])  # -S: nothing that was installed can be imported
    assert code == 0 and "trained" in said
    found = made.document()["mlflow"]
    assert len(found["problems"]) == 1 and "requirements.txt" in found["problems"][0]
    run = store.get_run(found["run_id"])
    assert run.info.status == "FINISHED" and run.data.tags["owner"] == "anna"
    assert run.data.params["lr"] == "3e-4" and "job/cost_usd" in run.data.metrics


def test_a_folder_of_its_own_can_be_named(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('here')")
    done = subprocess.run(
        [sys.executable, str(archive), "job", "--base", str(tmp_path / "ml")],
        env={**clean(os.environ), "TRAINSTACK_SCRIPT": "train.py"},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "node 1 of 1" in done.stdout
    assert (tmp_path / "ml" / "output" / "data" / "run.json").exists()


def test_a_run_writes_down_that_it_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kill without warning leaves behind: the script waits until it has seen it."""
    monkeypatch.setattr(around, "ALIVE_S", 0.0)
    (tmp_path / "train.py").write_text(
        "import json, os, time\n"
        "limit = time.monotonic() + 60\n"
        "while time.monotonic() < limit:\n"
        "    with open(os.environ['TRAINSTACK_CHECKPOINTS'] + '/trainstack-run.json') as stream:\n"
        "        (attempt,) = json.load(stream)['attempts']\n"
        "    if attempt['seen'] > attempt['began'] + 0.5 and attempt['status'] is None:\n"
        "        raise SystemExit(0)\n"
        "    time.sleep(0.05)\n"
        "raise SystemExit(1)\n"
    )
    result = {**clean(os.environ), "TRAINSTACK_SCRIPT": "train.py"}
    assert around.run(result, below(tmp_path / "ml"), tmp_path) == 0


def test_a_clock_that_steps_does_not_change_the_duration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the machine is set by an hour after the start, and again with each heartbeat."""
    monkeypatch.setattr(around, "ALIVE_S", 0.0)
    clock, steps = time.time, itertools.count()
    monkeypatch.setattr("agents.managed_job.run.time.time", lambda: clock() + 3600.0 * next(steps))
    (tmp_path / "train.py").write_text(
        "import json, os, time\n"
        "limit = time.monotonic() + 60\n"
        "while time.monotonic() < limit:\n"
        "    with open(os.environ['TRAINSTACK_CHECKPOINTS'] + '/trainstack-run.json') as stream:\n"
        "        (attempt,) = json.load(stream)['attempts']\n"
        "    if attempt['seen'] > attempt['began']:\n"
        "        raise SystemExit(0)\n"
        "    time.sleep(0.05)\n"
        "raise SystemExit(1)\n"
    )
    started = time.monotonic()
    environment = {**clean(os.environ), "TRAINSTACK_SCRIPT": "train.py"}
    assert around.run(environment, below(tmp_path / "ml"), tmp_path) == 0
    document = json.loads((tmp_path / "ml" / "output" / "data" / "run.json").read_text())
    assert 0 < document["duration_s"] <= time.monotonic() - started
