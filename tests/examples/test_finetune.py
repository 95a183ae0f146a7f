"""The LoRA template really trains, and an interruption changes none of its numbers."""

import shutil
import signal
from pathlib import Path

import pytest
import torch
from mlflow import MlflowClient

from tests.agents.managed_job.managed import Managed
from tests.examples.conftest import EXAMPLES, Make, interrupt, losses, run, variables

# As small as it can be and still learn something.
SMALL = ("--base-steps", "10", "--steps", "40", "--save-every", "10", "--batch", "8")


@pytest.fixture(scope="module")
def straight(
    archive: Path, store: MlflowClient, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Managed, str]:
    """A job that nothing interrupted, recorded in MLflow, and what it said."""
    home = tmp_path_factory.mktemp("straight")
    shutil.copytree(EXAMPLES / "finetune", home / "code")
    job = Managed(archive, home / "ml", "train.py", home / "code", **variables(store))
    code, said = job.run(*SMALL)
    assert code == 0, said
    return job, said


def adapter(job: Managed) -> dict[str, torch.Tensor]:
    document = torch.load(job.base() / "model" / "adapter.pt", weights_only=True)
    found: dict[str, torch.Tensor] = document["adapter"]
    return found


def test_it_trains_only_adapters_and_records_it(straight: tuple[Managed, str], store: MlflowClient) -> None:
    job, said = straight
    held_out = losses(said, "held_out_loss")
    assert held_out[40] < held_out[0] - 0.3
    assert {name.rpartition(".")[2] for name in adapter(job)} == {"a", "b"}
    assert len(adapter(job)) == 2 * 4 * 2, "two matrices beside four layers of two blocks"
    assert (job.base() / "model" / "base.pt").read_bytes() == (job.checkpoints / "base.pt").read_bytes()

    run = store.get_run(job.document()["mlflow"]["run_id"])
    assert run.info.status == "FINISHED" and run.data.params["steps"] == "40"
    assert run.data.metrics["held_out_loss_before"] == pytest.approx(held_out[0], abs=1e-5)
    assert run.data.metrics["held_out_loss_after"] == pytest.approx(held_out[40], abs=1e-5)
    assert [point.step for point in store.get_metric_history(run.info.run_id, "loss")] == [10, 20, 30, 40]
    assert run.data.metrics["step/compute_seconds"] > 0, "how long its steps took, by part"


def same(straight: tuple[Managed, str], job: Managed, said: str) -> bool:
    """Whether a run that went on came to the numbers of the one that was not interrupted."""
    whole, curve = straight[0], losses(straight[1])
    again = losses(said)
    assert again and again == {step: loss for step, loss in curve.items() if step in again}
    return all(torch.equal(adapter(job)[name], value) for name, value in adapter(whole).items())


def test_a_stop_saves_and_changes_no_number(straight: tuple[Managed, str], template: Make) -> None:
    job = template("finetune", "train.py")
    interrupt(job, 15, signal.SIGTERM)
    code, said = job.run(*SMALL)
    assert code == 128 + signal.SIGTERM and "stopped after step 15, which is saved" in said
    code, said = job.run(*SMALL)
    assert code == 0 and "goes on after step 15\n" in said and "base model: " not in said
    assert same(straight, job, said)


def test_a_kill_changes_no_number_and_the_run_is_the_same(
    straight: tuple[Managed, str], template: Make, store: MlflowClient
) -> None:
    job = template("finetune", "train.py", **variables(store))
    interrupt(job, 25, signal.SIGKILL)
    assert job.run(*SMALL)[0] == -signal.SIGKILL
    first = job.document()["mlflow"]["run_id"]
    code, said = job.run(*SMALL)
    assert code == 0 and "goes on after step 20\n" in said, "the last one that was saved"
    assert same(straight, job, said)
    assert job.document()["mlflow"] == {"run_id": first, "recorded": True, "problems": []}
    run = store.get_run(first)
    assert (run.info.status, run.data.tags["trainstack.interruptions"]) == ("FINISHED", "1")
    assert {30, 40} <= {point.step for point in store.get_metric_history(first, "loss")}


def test_a_damaged_checkpoint_costs_some_steps(straight: tuple[Managed, str], template: Make) -> None:
    job = template("finetune", "train.py")
    shutil.copytree(straight[0].checkpoints, job.checkpoints)
    newest = max(job.checkpoints.glob("step-*.pt"))
    newest.write_bytes(newest.read_bytes()[:1000])
    code, said = job.run(*SMALL)
    assert code == 0 and "goes on after step 30" in said and "an older one is tried" in said
    assert same(straight, job, said)


def test_it_runs_alone_with_weights_and_text_of_ones_own(
    straight: tuple[Managed, str], tmp_path: Path
) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("one two three four five six seven eight nine ten\n" * 200)
    own = ("--base", str(straight[0].base() / "model"), "--data", "texts")
    done = run(EXAMPLES / "finetune" / "train.py", tmp_path, *SMALL, *own)
    assert done.returncode == 0 and "base model" not in done.stdout, done.stderr
    assert (tmp_path / "model" / "adapter.pt").exists()
    assert not (tmp_path / "model" / "base.pt").exists(), "it is the input of the job"


def test_a_loss_that_does_not_fall_is_a_failure(template: Make) -> None:
    job = template("finetune", "train.py")
    code, said = job.run("--base-steps", "1", "--steps", "3", "--lr", "0")
    assert code == 1, said
    assert job.failure().startswith("train.py: exit code 1: the loss did not fall: ")
