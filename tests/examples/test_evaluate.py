"""The evaluation of what the LoRA template made, and what it refuses."""

import json
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
from mlflow import MlflowClient

from tests.examples.conftest import EXAMPLES, Make, Result, losses, run, variables
from tests.examples.test_finetune import SMALL


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The model folder of a small fine-tuning, and its held-out loss."""
    home = tmp_path_factory.mktemp("trained")
    done = run(EXAMPLES / "finetune" / "train.py", home, *SMALL)
    assert done.returncode == 0, done.stderr
    return home / "model", losses(done.stdout, "held_out_loss")[40]


def evaluate(home: Path, *arguments: str) -> Result:
    return run(EXAMPLES / "evaluate" / "evaluate.py", home, *arguments)


def test_it_finds_the_loss_of_the_fine_tuning(
    template: Make, store: MlflowClient, trained: tuple[Path, float], tmp_path: Path
) -> None:
    folder, loss = trained
    data = tmp_path / "ml" / "algo-1" / "input" / "data" / "data"
    data.mkdir(parents=True)
    with tarfile.open(data / "model.tar.gz", "w:gz") as archive:  # as the service packs what a job made
        for path in folder.iterdir():
            archive.add(path, path.name)
    job = template("evaluate", "evaluate.py", **variables(store))
    code, said = job.run("--examples", "64")
    assert code == 0, said
    document = json.loads((job.base() / "output" / "data" / "metrics.json").read_text())
    assert document["kind"] == "trainstack.lora/1"
    assert document["metrics"]["loss"] == pytest.approx(loss, abs=1e-4)
    assert 0 < document["metrics"]["accuracy"] < 1 < document["metrics"]["perplexity"]
    run = store.get_run(job.document()["mlflow"]["run_id"])
    assert run.data.metrics["loss"] == pytest.approx(document["metrics"]["loss"])


def test_the_base_model_is_worse(trained: tuple[Path, float], tmp_path: Path) -> None:
    folder, loss = trained
    done = evaluate(tmp_path, "--artifact", str(folder / "base.pt"))
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "output" / "metrics.json").read_text())
    assert document["kind"] == "trainstack.base/1" and document["metrics"]["loss"] > loss + 0.3


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self._target = target

    def __reduce__(self) -> tuple[Any, tuple[str, ...]]:
        return (os.system, (f"touch {self._target}",))


def test_code_in_an_artifact_is_refused_and_never_runs(tmp_path: Path) -> None:
    torch.save({"format": "trainstack.base/1", "model": Evil(tmp_path / "ran")}, tmp_path / "evil.pt")
    done = evaluate(tmp_path, "--artifact", "evil.pt")
    assert done.returncode == 2
    assert done.stderr == "refused: evil.pt: holds more than tensors, so that loading it might run code\n"
    assert not (tmp_path / "ran").exists() and not (tmp_path / "output").exists()


def _cut(folder: Path) -> None:
    (folder / "adapter.pt").write_bytes((folder / "adapter.pt").read_bytes()[:2000])


def _wrong_rank(folder: Path) -> None:
    document = torch.load(folder / "adapter.pt", weights_only=True)
    torch.save({**document, "rank": 3}, folder / "adapter.pt")


def _half(folder: Path) -> None:
    document = torch.load(folder / "adapter.pt", weights_only=True)
    kept = dict(list(document["adapter"].items())[::2])
    torch.save({**document, "adapter": kept}, folder / "adapter.pt")


def _other_format(folder: Path) -> None:
    torch.save({"format": "mine", "model": {}}, folder / "adapter.pt")


def _without_base(folder: Path) -> None:
    (folder / "base.pt").unlink()


SPOILS = (_cut, _wrong_rank, _half, _other_format, _without_base)
# All of them in one process: most of its time is the import of torch.
DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
import evaluate
for name in sys.argv[2:]:
    sys.argv = ["evaluate.py", "--artifact", name]
    print(name, evaluate.main())
"""


def test_what_does_not_fit_is_refused(trained: tuple[Path, float], tmp_path: Path) -> None:
    names = [spoil.__name__ for spoil in SPOILS]
    for name, spoil in zip(names, SPOILS, strict=True):
        shutil.copytree(trained[0], tmp_path / name)
        spoil(tmp_path / name)
    (tmp_path / "driver.py").write_text(DRIVER)
    done = run(tmp_path / "driver.py", tmp_path, str(EXAMPLES / "evaluate"), *names)
    assert done.stdout.splitlines() == [f"{name} 2" for name in names], done.stderr
    said = done.stderr.splitlines()
    assert [line.partition("/")[0] for line in said] == [f"refused: {name}" for name in names]


def test_an_archive_that_writes_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "base.pt").write_bytes(b"x")
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "base.pt", "../outside.pt")
    done = evaluate(tmp_path, "--artifact", "model.tar.gz")
    assert done.returncode == 2 and done.stderr.startswith("refused: model.tar.gz: "), done.stderr
