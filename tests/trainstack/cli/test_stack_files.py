"""Commands on stack files that break rules, that are not read, or whose layout is not supported."""

from dataclasses import replace
from pathlib import Path

import pytest

from infra import stackspec
from infra.errors import Problem, UserError
from infra.stackspec.load import LoadedSpec
from tests.trainstack.cli.command import run

SLURM = "large-slurm-aws"


def test_a_spec_without_a_part_that_prices_need_is_refused_with_its_problems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = stackspec.load_typed(SLURM)
    on = loaded.spec.on.model_copy(update={"pcs": None})
    missing = Problem("on.pcs", None, "required key is missing", "Add it.", code="required-key-missing")
    broken: LoadedSpec = replace(loaded, spec=loaded.spec.model_copy(update={"on": on}), broken=(missing,))
    monkeypatch.setattr(stackspec, "load_typed", lambda _: broken)
    with pytest.raises(UserError) as caught:
        run("cost", "-s", SLURM)
    assert [one.code for one in caught.value.problems] == ["required-key-missing"]


def test_a_stack_file_of_the_folder_that_is_not_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "Pulumi.small-aws.yaml"
    file.write_text("config: {}\n")
    monkeypatch.chdir(tmp_path)
    code, said = run("cost", "-s", "small-aws")
    assert code == 0 and str(file) in said
    assert str(tmp_path) not in run("cost", "-s", "small-gcp")[1]


def test_the_queue_of_several_clusters_is_that_of_kueue() -> None:
    with pytest.raises(UserError) as caught:
        run("slurm", "queue", "-s", "large-mixed")
    (found,) = caught.value.problems
    assert found.code == "stack-is-not-slurm" and "trainstack queue -s large-mixed" in found.fix
