"""Options of a command line are resolved to a run; all problems are reported at once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from infra.jobs import money
from infra.jobs.options import RunOptions, resolve
from infra.jobs.service import CallerIdentity
from tests.infra.jobs.samples import ACCOUNT, ADA, BOB, CALLER, OPTIONS, OUTPUTS, order


def refused(**changes: Any) -> str:
    with pytest.raises(UserError) as caught:
        order(**changes)
    return str(caught.value)


def test_unset_options_come_from_the_stack() -> None:
    found = order()
    assert (found.person, found.machine.machine, found.spot, found.nodes) == (ADA, "ml.g6.xlarge", True, 1)
    assert order(machine="ml.m7i.xlarge").spot is False
    assert order(spot=False).spot is False and order(machine="cpu", spot=True).spot is True


PLAN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/december"
PLANNED = OUTPUTS.model_copy(
    update={
        "machines": (
            OUTPUTS.machines[0].model_copy(
                update={
                    "machine": "ml.p5.48xlarge",
                    "purchase": "training_plan",
                    "reservation": PLAN,
                    "usd_per_hour": 0.0,
                }
            ),
        )
    }
)


def test_machines_of_a_training_plan_are_neither_spot_nor_kept_warm_nor_paid_again() -> None:
    found = resolve(PLANNED, OPTIONS, CALLER)
    assert found.spot is False and money.price(found).usd == 0
    assert "besides the reservation" in str(money.price(found))
    with pytest.raises(UserError) as caught:
        resolve(PLANNED, replace(OPTIONS, spot=True, keep_warm_minutes=10), CALLER)
    assert [problem.path for problem in caught.value.problems] == ["--spot", "--keep-warm"]


@pytest.mark.parametrize("service", ["sagemaker", "vertex"])
def test_spot_on_a_reserved_machine_is_refused_on_every_service(service: str) -> None:
    outputs = PLANNED.model_copy(update={"service": service})
    with pytest.raises(UserError) as caught:
        resolve(outputs, replace(OPTIONS, spot=True), CALLER)
    assert caught.value.codes == (("spot-with-reservation", "--spot"),)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(UserError) as caught:
        resolve(OUTPUTS, RunOptions(folder=Path()), None)
    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["--as", "--on", "--max-hours", "--dataset"]


def test_a_misspelt_name_is_recognised() -> None:
    assert " l4? Known: b200," in refused(machine="l40")
    assert " ada? Known: ada," in refused(person="Adda")


@pytest.mark.parametrize(
    ("session", "whose"), [("bob", BOB), ("BOB@example.com", BOB), ("ada", ADA), ("platform-admin", None)]
)
def test_whose_run_it_is_may_show_in_the_login(session: str, whose: Any) -> None:
    options = replace(OPTIONS, person="")
    if whose is None:
        with pytest.raises(UserError, match=r"ada, bob\. \[person-not-named\]"):
            resolve(OUTPUTS, options, CallerIdentity(ACCOUNT, session))
    else:
        assert resolve(OUTPUTS, options, CallerIdentity(ACCOUNT, session)).person == whose


def test_a_stack_of_one_person_needs_no_name() -> None:
    alone = OUTPUTS.model_copy(update={"people": (BOB,)})
    assert resolve(alone, replace(OPTIONS, person=""), CALLER).person == BOB


@pytest.mark.parametrize(
    ("changes", "option", "code"),
    [
        ({"nodes": 5}, "--nodes", "nodes-beyond-limit"),
        ({"nodes": 0}, "--nodes", "nodes-beyond-limit"),
        ({"max_hours": 73}, "--max-hours", "max-hours-beyond-limit"),
        ({"max_hours": 0}, "--max-hours", "max-hours-beyond-limit"),
        ({"max_hours": 0.0001}, "--max-hours", "max-hours-beyond-limit"),
        ({"max_hours": None}, "--max-hours", "max-hours-missing"),
        ({"max_hours": float("nan")}, "--max-hours", "max-hours-beyond-limit"),
        ({"keep_warm_minutes": 61}, "--keep-warm", "keep-warm-not-accepted"),
        ({"keep_warm_minutes": 10}, "--keep-warm", "keep-warm-with-spot"),
        ({"max_wait_hours": -1}, "--max-wait", "max-wait-not-accepted"),
        ({"dataset": ""}, "--dataset", "dataset-missing"),
        ({"data": "gs://bucket/x"}, "--data", "invalid-data-uri"),
        ({"dataset": "a\nb"}, "--dataset", "invalid-record-text"),
        ({"task": " "}, "--task", "task-empty"),
    ],
)
def test_options_beyond_the_stack_are_refused(changes: dict[str, Any], option: str, code: str) -> None:
    with pytest.raises(UserError) as caught:
        order(**changes)
    assert (code, option) in caught.value.codes


def test_data_in_a_bucket_names_the_dataset() -> None:
    assert order(dataset="", data="s3://lab-data/cats/").dataset == "s3://lab-data/cats/"
    assert order(dataset="cats", data="s3://lab-data/cats/").dataset == "cats"
