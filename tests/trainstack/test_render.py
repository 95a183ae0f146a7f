"""`smoke render`: run plans and the validation itself, as the files that start them."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.launchers import runplan
from infra.launchers.registry import LAUNCHERS
from smoke_training import cli
from tests.infra.launchers import plans
from tests.smoke_training import samples
from trainstack import render


def rendered(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["render", *arguments], "trainstack smoke", (render,))
    out, error = capsys.readouterr()
    return code, out, error


@pytest.mark.parametrize("kind", list(LAUNCHERS))
def test_every_launcher_can_be_asked_for(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    asked: Any = {"sagemaker": plans.managed, "vertex": plans.vertex}.get(kind, plans.training)()
    path.write_text(runplan.render(asked))
    code, out, _ = rendered(capsys, "--for", kind, "--run", str(path))
    assert (code, out) == (0, LAUNCHERS[kind].render(asked))


def test_only_a_job_has_a_schedule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    path.write_text(runplan.render(plans.training()))
    code, out, _ = rendered(capsys, "--for", "job", "--run", str(path), "--schedule", "0 5 * * 1")
    assert code == 0 and "kind: CronJob" in out
    code, _, error = rendered(capsys, "--for", "jobset", "--run", str(path), "--schedule", "0 5 * * 1")
    assert code == 3 and "--schedule: " in error


def test_every_problem_of_a_run_plan_is_reported_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"schema": "trainstack.run-plan/1", "nodes": 0}')
    code, _, error = rendered(capsys, "--for", "job", "--run", str(path))
    assert code == 3
    assert "image: missing" in error and "command: missing" in error and "Traceback" not in error


def test_the_validation_itself_is_a_run_like_any_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(samples.document(image="registry.example/train@sha256:" + "0a" * 32)))
    code, out, _ = rendered(
        capsys,
        *("--for", "sbatch", "--plan", str(path), "--cpu", "80", "--code", "/shared"),
        *("--work-root", "/shared/results"),
    )
    assert code == 0
    assert "export WORK_DIR=/shared/results/validation" in out
    # A user of a machine has a home and a name of their own, and no termination log.
    assert not any(name in out for name in ("HOME=", "USER=", "TERMINATION_MESSAGE_PATH="))
    assert "#SBATCH --nodes=2" in out and "#SBATCH --cpus-per-task=80" in out
    assert "python /shared/smoke_training.zip node --plan /shared/plan.json" in out
    path.write_text(json.dumps(samples.document(image="train:latest")))
    code, _, error = rendered(capsys, "--for", "job", "--plan", str(path))
    assert code == 3 and 'image: got "train:latest"' in error
