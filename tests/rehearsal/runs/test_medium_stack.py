"""The shipped environment, deployed by the real engine in the emulated clouds, from first up to last process.

The tests of this file share one rehearsal and run in their order: each goes on where the one before stopped.
"""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import mlflow
import psutil
import pytest
from mlflow.entities import Run

from infra.engine import install
from rehearsal.client import Rehearsal

ROOT = Path(__file__).resolve().parents[3]
STACK = "dev-aws"
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("medium")
    cache = ROOT / ".trainstack" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    (folder / "cache").symlink_to(cache)
    yield folder / "rehearsal"
    Rehearsal(folder / "rehearsal").stop()


def trainstack(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / ".venv" / "bin" / "trainstack"), *arguments]
    environment = {**os.environ, "TRAINSTACK_REHEARSAL_HOME": str(home), "COLUMNS": "200"}
    return subprocess.run(
        command, env=environment, check=False, capture_output=True, text=True, timeout=200, cwd=ROOT
    )


def up(home: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return trainstack(home, "up", "-s", STACK, "--rehearse", "--yes", *more)


def native(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Plain `pulumi`, in the environment that `rehearse env` prints."""
    printed = trainstack(home, "rehearse", "env", "-s", STACK).stdout
    script = f"{printed}\npulumi {' '.join(arguments)}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PULUMI_")}
    return subprocess.run(
        ["/bin/sh", "-ec", script], env=environment, check=False, capture_output=True, text=True, cwd=ROOT
    )


def processes(home: Path) -> list[str]:
    """Whatever still runs for this rehearsal."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        words = " ".join(process.info["cmdline"] or [])
        variables = process.info["environ"] or {}
        if str(home) in words or variables.get("TRAINSTACK_REHEARSAL_HOME") == str(home):
            found.append(words)
    return found


def results(home: Path) -> list[Path]:
    return sorted(home.glob("s3/*checkpoints*/smoke/*/result.json"))


def runs(home: Path) -> list[Run]:
    """The validation runs that the rehearsed MLflow server knows, oldest first."""
    lines = trainstack(home, "rehearse", "login", "-s", STACK).stdout.split("\n")
    login = dict(line.split(maxsplit=1) for line in lines if line)
    os.environ["MLFLOW_TRACKING_USERNAME"] = login["username"]
    os.environ["MLFLOW_TRACKING_PASSWORD"] = login["password"]
    client = mlflow.MlflowClient(login["url"])
    experiment = client.get_experiment_by_name("smoke-validation")
    assert experiment
    return list(client.search_runs([experiment.experiment_id], order_by=["attributes.start_time ASC"]))


def test_a_preview_of_nothing_shows_everything_and_its_price(home: Path) -> None:
    done = trainstack(home, "preview", "-s", STACK, "--rehearse")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "created" in done.stdout
    assert "total of known" in done.stdout
    assert Rehearsal(home).status()["resources"]["aws"] == 0


def test_training_that_does_not_scale_fails_the_deployment_with_figure_and_culprit(home: Path) -> None:
    done = up(home, "--fault", "smoke:slow-rank=1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "up failed" in done.stdout
    assert "FAIL" in done.stdout
    assert "expected >= 0.80" in done.stdout or "tolerated: 1.15x" in done.stdout
    assert "suspect" in done.stdout and "rank 1 on node" in done.stdout
    assert "95% interval" in done.stdout and "cause: " in done.stdout and "Next: " in done.stdout
    assert "Gate: closed; it opens for PASS." in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_the_next_up_runs_only_the_validation_again_and_succeeds(home: Path) -> None:
    before = Rehearsal(home).status()["resources"]
    done = up(home)
    assert done.returncode == 0, done.stdout + done.stderr
    # Created is only what waited for a passed gate: the schedule that repeats it, with its code and plan.
    assert "3 created, 1 replaced" in done.stdout
    after = Rehearsal(home).status()["resources"]
    assert after == {**before, "kubernetes": before["kubernetes"] + 2}
    for told in ("cost per month", "scaling_efficiency", "MLflow ", "result.json", "destroy -s dev-aws"):
        assert told in done.stdout, told
    result = json.loads(results(home)[-1].read_text())
    assert result["verdict"] == "PASS"
    assert len(result["cluster"]["ranks"]) == 2


def test_the_failed_and_the_passed_run_are_both_on_record(home: Path) -> None:
    failed, passed = runs(home)
    assert (failed.info.status, passed.info.status) == ("FAILED", "FINISHED")
    for run in (failed, passed):
        tags, data = run.data.tags, run.data
        assert {"owner", "team", "task", "dataset", "status"} <= tags.keys()
        assert tags["trainstack.stack"] == STACK and tags["trainstack.instance_type"] == "p4d.24xlarge"
        assert data.params and data.metrics
    assert passed.data.tags["trainstack.verdict"] == "PASS"


def test_an_unchanged_up_changes_nothing_and_trains_nothing(home: Path) -> None:
    (path, *_), before = results(home), [file.stat().st_mtime_ns for file in results(home)]
    done = up(home)
    assert done.returncode == 0
    for changed in ("created", "updated", "replaced", "deleted"):
        assert changed not in done.stdout
    assert [file.stat().st_mtime_ns for file in results(home)] == before and path.exists()


def test_the_native_cli_sees_the_same_state(home: Path) -> None:
    done = native(home, "preview", "--expect-no-changes", "--non-interactive")
    assert done.returncode == 0, done.stdout + done.stderr
    told = native(home, "stack", "output", "--json")
    outputs = json.loads(told.stdout)
    assert outputs["trainstack"]["stack"] == STACK
    assert outputs["trainstack"]["smoke"]["schedule"] == "smoke-schedule"
    assert outputs["trainstack"]["smoke"]["alert_topic"].startswith("arn:aws:sns:us-east-1:")
    assert outputs["mlflow_url"].startswith("http://mlflow.mlflow.svc")
    assert "exec" in outputs["kubeconfig"]
    committed = (ROOT / "stacks" / "config" / f"Pulumi.{STACK}.yaml").read_text()
    assert "encryptionsalt" not in committed, "a rehearsal must not write into the stack file"


def test_a_fault_of_the_training_makes_a_passed_validation_run_again(home: Path) -> None:
    done = up(home, "--fault", "smoke:slow-rank=1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "rank 1 on node" in done.stdout and "Gate: closed; it opens for PASS." in done.stdout
    assert re.search(r"^up failed after \d+ s: 1 replaced, \d+ unchanged$", done.stdout, re.MULTILINE)


def test_no_secret_is_in_the_state_or_in_a_log(home: Path) -> None:
    outputs = native(home, "stack", "output", "--json").stdout
    secret = Rehearsal(home).secret(json.loads(outputs)["trainstack"]["mlflow_admin_secret"])
    assert secret and len(secret["password"]) >= 20
    places = [*home.glob("state/**/*.json"), *home.glob("logs/**/*.log"), home / "daemon.log"]
    assert len(places) >= 4
    leaks = [path for path in places if secret["password"] in path.read_text(errors="replace")]
    assert leaks == []


def test_destroy_leaves_no_resource_and_no_process(home: Path) -> None:
    done = native(home, "destroy", "--yes", "--non-interactive")
    assert done.returncode == 0, done.stdout + done.stderr
    rehearsal = Rehearsal(home)
    rehearsal.wait_until_idle()
    assert rehearsal.status()["resources"] == {"aws": 0, "gcp": 0, "kubernetes": 0}
    assert processes(home) == []


def test_an_interrupted_up_ends_cleanly_and_the_next_one_goes_on(home: Path) -> None:
    command = [str(ROOT / ".venv" / "bin" / "trainstack"), "up", "-s", STACK, "--rehearse", "--yes"]
    environment = {**os.environ, "TRAINSTACK_REHEARSAL_HOME": str(home)}
    running = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    rehearsal, deadline = Rehearsal(home), time.monotonic() + 60
    while rehearsal.status()["resources"]["aws"] < 20 and time.monotonic() < deadline:
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    told, _ = running.communicate(timeout=60)
    assert running.returncode == 130, told
    assert "up interrupted" in told
    kept = rehearsal.status()["resources"]["aws"]
    assert kept >= 20
    done = trainstack(home, "preview", "-s", STACK, "--rehearse")
    assert done.returncode == 0, done.stdout
    assert "unchanged" in done.stdout, "what was created before the interrupt is in the state"
    done = trainstack(home, "destroy", "-s", STACK, "--rehearse", "--yes")
    assert done.returncode == 0, done.stdout
    assert sum(rehearsal.status()["resources"].values()) == 0
    assert processes(home) == []


def test_nothing_is_started_for_a_stack_file_that_is_wrong(home: Path) -> None:
    done = trainstack(home, "up", "-s", "no-such-stack", "--rehearse", "--yes")
    assert done.returncode == 2
    assert "dev-aws" in done.stderr and "Traceback" not in done.stderr
    done = trainstack(home, "up", "-s", STACK, "--rehearse", "--yes", "--fault", "smoke:gremlins")
    assert done.returncode == 2 and "smoke:slow-rank" in done.stderr
    done = trainstack(home, "up", "-s", STACK, "--yes", "--fault", "smoke:slow-rank=1")
    assert done.returncode == 2 and "--rehearse" in done.stderr
    assert install.current() is not None and processes(home) == []
