import json
from dataclasses import replace
from typing import Any

import pytest

from infra.launchers import runplan
from infra.launchers.runplan import Mount, RunPlan, RunPlanError
from tests.infra.launchers import plans


@pytest.mark.parametrize(
    "plan", [plans.training(), plans.managed(), plans.vertex(), plans.slurm(), plans.cpu()]
)
def test_a_plan_survives_its_document(plan: RunPlan) -> None:
    assert runplan.parse(runplan.render(plan)) == plan


def problems(**changes: Any) -> list[str]:
    document = json.loads(runplan.render(plans.training()))
    document.update(changes)
    with pytest.raises(RunPlanError) as caught:
        runplan.parse(json.dumps({key: value for key, value in document.items() if value != "GONE"}))
    return caught.value.problems


def test_every_problem_of_a_document_is_reported_at_once_with_its_path() -> None:
    found = problems(
        nodes="two",
        gpu=8,
        image="GONE",
        sagemaker={"role_arn": 7},
        mounts=[{"name": "data", "path": "/data", "size": 3}],
        env={"A": 1},
    )
    for path in (
        *('nodes: got "two"', "gpu: unknown key", "image: missing", "env.A: got 1"),
        *("sagemaker.role_arn: got 7", "sagemaker.output_uri: missing", "mounts[0].size: unknown key"),
    ):
        assert any(line.startswith(path) for line in found), (path, found)


def test_values_that_no_place_can_run_are_refused_together() -> None:
    bad = replace(
        plans.training(),
        name="Llama_7B",
        nodes=0,
        image="train:latest",
        command=("bash", "run.sh"),
        env={"NODE_RANK": "0", "PET_NNODES": "2", "1BAD": "x"},
        mounts=(
            Mount(name="a", path="data"),
            Mount(name="a", path="/x", claim="c", config_map="m", secret="s"),
        ),
    )
    with pytest.raises(RunPlanError) as caught:
        runplan.check(bad)
    found = "\n".join(caught.value.problems)
    for path in (
        "name: ", "nodes: ", "image: ", "command[0]: ", "env.NODE_RANK: ", "env.PET_NNODES: ", "env.1BAD: ",
        "mounts[0].path: ", "mounts[1].name: ", "mounts[1]: claim and config_map and secret",
    ):  # fmt: skip
        assert path in found, path


def test_ranks_default_to_the_gpus_or_to_one() -> None:
    assert plans.training().ranks == 8
    assert plans.cpu().ranks == 1
    assert replace(plans.training(), ranks_per_node=4).ranks == 4


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "trainstack.run-plan/2"}'])
def test_a_text_that_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(RunPlanError):
        runplan.parse(text)
