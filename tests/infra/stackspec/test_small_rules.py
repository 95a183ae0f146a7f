"""A stack without a cluster: what its stack file must say, and what means nothing in it."""

import copy
import datetime
import json
from typing import Any

import pytest

from infra import cost, stackspec
from infra.errors import UserError
from infra.stackspec.document import read
from infra.stackspec.layouts import SmallLayout
from infra.stackspec.load import CONFIG
from tests.infra.stackspec.stack_files import Values, problems
from tests.stacks.stack_files import LOAD_BALANCER, at

_PERSON = {"name": "joe", "email": "joe@example.com", "team": "vision"}
_DIGEST = "@sha256:" + "a" * 64
_PLAN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/december"
_PLANNED = {
    "name": "l4",
    "machine": "ml.p5.48xlarge",
    "purchase": {"kind": "training_plan", "arn": _PLAN},
    "max_nodes": 2,
}
BROKEN: dict[str, tuple[str, Any, str]] = {
    "two people of one name": ("layout.people.1.name", "ada", "layout.people[1].name"),
    "two people of one address": ("layout.people.1.email", "Ada@Example.com", "layout.people[1].email"),
    "a person of no team": ("layout.people.0.team", "audio", "layout.people[0].team"),
    "a person without a budget to stop by": (
        "layout.people.0",
        {**_PERSON, "over_budget": "stop"},
        "layout.people[0].over_budget",
    ),
    "a person with more than everybody": (
        "layout.people.0",
        {**_PERSON, "monthly_usd": 9000},
        "layout.people[0].monthly_usd",
    ),
    "a person who may spend nothing": (
        "layout.people.0",
        {**_PERSON, "monthly_usd": 0},
        "layout.people[0].monthly_usd",
    ),
    "a team with more than everybody": ("teams.0.monthly_usd", 6000, "teams[0].monthly_usd"),
    "a machine that jobs do not have": (
        "layout.machines.0.machine",
        "g6.xlarge",
        "layout.machines[0].machine",
    ),
    "two machines of one name": ("layout.machines.1.name", "l4", "layout.machines[1].name"),
    "a machine that is reserved": (
        "layout.machines.0.purchase",
        {"kind": "reserved", "id": "cr-0123456789abcdef0"},
        "layout.machines[0].purchase.kind",
    ),
    "a training plan of another region": (
        "layout.machines.0",
        {**_PLANNED, "purchase": {"kind": "training_plan", "arn": _PLAN.replace("us-west-2", "us-east-1")}},
        "layout.machines[0].purchase.arn",
    ),
    "no training plan": (
        "layout.machines.0",
        {**_PLANNED, "purchase": {"kind": "training_plan", "arn": "december"}},
        "layout.machines[0].purchase.arn",
    ),
    "a machine that no plan reserves": (
        "layout.machines.0.purchase",
        {"kind": "training_plan", "arn": _PLAN},
        "layout.machines[0].machine",
    ),
    "a notebook on no machine of notebooks": (
        "layout.notebooks",
        {"machines": ["ml.c5n.xlarge"]},
        "layout.notebooks.machines[0]",
    ),
    "a job for more than 28 days": ("layout.max_hours", 673, "layout.max_hours"),
    "an idle time that the service does not know": ("layout.idle_minutes", 30, "layout.idle_minutes"),
    "a zone of another region": ("layout.zones.1", "us-east-1b", "layout.zones[1]"),
    "one zone": ("layout.zones", ["us-west-2a"], "layout.zones"),
    "a public range": ("layout.network_cidr", "8.8.0.0/16", "layout.network_cidr"),
    "a validation on no machine": ("smoke.pools", ["h100"], "smoke.pools[0]"),
    "a validation on two machines": ("smoke.pools", ["l4", "l4x4"], "smoke.pools"),
    "a validation on more machines than a job has": ("smoke.nodes", 3, "smoke.nodes"),
    "a tracking server": (
        "tracking",
        {"image": f"registry.example.com/mlflow{_DIGEST}", "replicas": 1, "workers": 1},
        "tracking",
    ),
    "a database": ("on.database", {"min_acu": 0, "max_acu": 2}, "on.database"),
    "a load balancer": ("on.load_balancer", LOAD_BALANCER, "on.load_balancer"),
    "administrators of a cluster": (
        "on.admin_arns",
        ["arn:aws:iam::123456789012:role/platform"],
        "on.admin_arns",
    ),
    "homes": ("data.homes", True, "data.homes"),
    "jobs of teams to stop": ("smoke.drain", True, "smoke.drain"),
    "guaranteed GPUs": ("teams.0.gpus", {"l4": 1}, "teams[0].gpus"),
    "members": ("teams.0.members", ["arn:aws:iam::123456789012:user/ada"], "teams[0].members"),
    "GPU-hours": ("teams.0.monthly_gpu_hours", 100, "teams[0].monthly_gpu_hours"),
}


@pytest.fixture
def small() -> Values:
    content = json.loads(json.dumps(read(CONFIG / "Pulumi.small-aws.yaml", "f")))["config"]
    return {key.partition(":")[2]: value for key, value in content.items()}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_is_refused_at_its_place(small: Values, name: str) -> None:
    path, value, place = BROKEN[name]
    at(small["spec"], path, copy.deepcopy(value))
    found = problems(small)
    assert [problem.path for problem in found] == [place]
    assert all(problem.rule and problem.fix for problem in found)


def test_machines_of_a_training_plan_cost_nothing_more_and_are_not_validated_again(small: Values) -> None:
    small["spec"]["layout"]["machines"][0] = copy.deepcopy(_PLANNED)
    spec = stackspec.load("small-aws", small, "f").spec
    (jobs,) = [
        item
        for item in cost.estimate(spec, datetime.date(2026, 11, 26)).items
        if item.name.startswith("jobs on l4 ")
    ]
    assert "training plan" in jobs.name and (jobs.minimum, jobs.expected, jobs.maximum) == (0, 0, 0)
    small["spec"].setdefault("smoke", {})["schedule"] = "0 3 * * *"
    assert [problem.path for problem in problems(small)] == ["smoke.schedule"]


def test_everything_that_is_wrong_is_said_at_once(small: Values) -> None:
    small["spec"]["layout"]["people"][0]["team"] = "audio"
    small["spec"]["layout"]["max_hours"] = 1000
    small["spec"]["data"]["homes"] = True
    places = {problem.path for problem in problems(small)}
    assert places == {"layout.people[0].team", "layout.max_hours", "data.homes"}


def test_a_job_has_room_for_a_name_of_its_own(small: Values) -> None:
    small["spec"]["layout"]["people"][0]["name"] = "somebody-with-a-long-name"
    with pytest.raises(UserError) as caught:
        stackspec.load("a-stack-with-a-rather-long-name", small, "f")
    (problem,) = caught.value.problems
    assert problem.path == "layout.people[0].name" and "17 characters too long" in problem.rule


def test_the_shipped_stack_file_fits_one_screen() -> None:
    assert len((CONFIG / "Pulumi.small-aws.yaml").read_text().splitlines()) <= 50


def test_a_stack_without_a_cluster_needs_no_part_of_one(small: Values) -> None:
    spec = stackspec.load("small", small, "f").spec
    assert isinstance(spec.layout, SmallLayout)
    assert spec.tracking is None and spec.on.model_dump()["database"] is None


@pytest.mark.parametrize("key", ["tracking", "on.admin_arns", "on.database", "on.repair", "on.efa_driver"])
def test_a_cluster_still_has_to_say_what_only_it_has(values: Values, key: str) -> None:
    at(values["spec"], key, [] if key == "on.admin_arns" else None)
    (problem,) = problems(values)
    assert problem.path == key


def test_the_bill_stops_nothing_in_a_cluster(values: Values) -> None:
    values["spec"]["budget"]["over_budget"] = "stop"
    (problem,) = problems(values)
    assert problem.path == "budget.over_budget" and "teams[].over_budget" in problem.fix
