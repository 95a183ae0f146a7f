"""Stacks without a cluster: required and unsupported settings, on each cloud."""

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
ON_AWS: dict[str, tuple[str, Any, str, str]] = {
    "two people of one name": ("layout.people.1.name", "ada", "layout.people[1].name", "repeated-value"),
    "a person whose name begins with another's": (
        "layout.people.1.name",
        "ada-2",
        "layout.people[1].name",
        "person-name-begins-with-another",
    ),
    "two people of one address": (
        "layout.people.1.email",
        "Ada@Example.com",
        "layout.people[1].email",
        "repeated-value",
    ),
    "a person of no team": ("layout.people.0.team", "audio", "layout.people[0].team", "unknown-team"),
    "a person without a budget to stop by": (
        "layout.people.0",
        {**_PERSON, "over_budget": "stop"},
        "layout.people[0].over_budget",
        "person-without-budget",
    ),
    "a person with more than the stack": (
        "layout.people.0",
        {**_PERSON, "monthly_usd": 9000},
        "layout.people[0].monthly_usd",
        "budget-exceeds-stack",
    ),
    "a person who may spend nothing": (
        "layout.people.0",
        {**_PERSON, "monthly_usd": 0},
        "layout.people[0].monthly_usd",
        "amount-not-positive",
    ),
    "a team with more than the stack": (
        "teams.0.monthly_usd",
        6000,
        "teams[0].monthly_usd",
        "budget-exceeds-stack",
    ),
    "a machine that jobs do not have": (
        "layout.machines.0.machine",
        "g6.xlarge",
        "layout.machines[0].machine",
        "unknown-job-machine",
    ),
    "two machines of one name": ("layout.machines.1.name", "l4", "layout.machines[1].name", "repeated-value"),
    "a machine that is reserved": (
        "layout.machines.0.purchase",
        {"kind": "reserved", "id": "cr-0123456789abcdef0"},
        "layout.machines[0].purchase.kind",
        "reservation-not-for-jobs",
    ),
    "a training plan of another region": (
        "layout.machines.0",
        {**_PLANNED, "purchase": {"kind": "training_plan", "arn": _PLAN.replace("us-west-2", "us-east-1")}},
        "layout.machines[0].purchase.arn",
        "training-plan-elsewhere",
    ),
    "no training plan": (
        "layout.machines.0",
        {**_PLANNED, "purchase": {"kind": "training_plan", "arn": "december"}},
        "layout.machines[0].purchase.arn",
        "invalid-training-plan-arn",
    ),
    "a machine that no plan reserves": (
        "layout.machines.0.purchase",
        {"kind": "training_plan", "arn": _PLAN},
        "layout.machines[0].machine",
        "machine-not-in-training-plans",
    ),
    "a notebook on no machine of notebooks": (
        "layout.notebooks",
        {"machines": ["ml.c5n.xlarge"]},
        "layout.notebooks.machines[0]",
        "unknown-job-machine",
    ),
    "a job for more than 28 days": ("layout.max_hours", 673, "layout.max_hours", "job-too-long"),
    "an idle time that the service does not know": (
        "layout.idle_minutes",
        30,
        "layout.idle_minutes",
        "greater-than-equal",
    ),
    "a zone of another region": ("layout.zones.1", "us-east-1b", "layout.zones[1]", "zone-not-in-region"),
    "one zone": ("layout.zones", ["us-west-2a"], "layout.zones", "needs-two-zones"),
    "a public range": ("layout.network_cidr", "8.8.0.0/16", "layout.network_cidr", "network-not-private"),
    "a validation on no machine": ("smoke.pools", ["h100"], "smoke.pools[0]", "unknown-machine"),
    "a validation on two machines": ("smoke.pools", ["l4", "l4x4"], "smoke.pools", "validates-one-machine"),
    "a validation on more machines than a job has": (
        "smoke.nodes",
        3,
        "smoke.nodes",
        "gate-larger-than-machine",
    ),
    "a tracking server": (
        "tracking",
        {"image": f"registry.example.com/mlflow{_DIGEST}", "replicas": 1, "workers": 1},
        "tracking",
        "needs-a-cluster",
    ),
    "a database": ("on.database", {"min_acu": 0, "max_acu": 2}, "on.database", "needs-a-cluster"),
    "a load balancer": ("on.load_balancer", LOAD_BALANCER, "on.load_balancer", "needs-a-cluster"),
    "administrators of a cluster": (
        "on.admin_arns",
        ["arn:aws:iam::123456789012:role/platform"],
        "on.admin_arns",
        "needs-a-cluster",
    ),
    "homes": ("data.homes", True, "data.homes", "needs-a-cluster"),
    "jobs of teams to stop": ("smoke.drain", True, "smoke.drain", "needs-a-cluster"),
    "guaranteed GPUs": ("teams.0.gpus", {"l4": 1}, "teams[0].gpus", "needs-a-cluster"),
    "members": (
        "teams.0.members",
        ["arn:aws:iam::123456789012:user/ada"],
        "teams[0].members",
        "needs-a-cluster",
    ),
    "GPU-hours": ("teams.0.monthly_gpu_hours", 100, "teams[0].monthly_gpu_hours", "needs-a-cluster"),
}
ON_GCP: dict[str, tuple[str, Any, str, str]] = {
    "a zone of another region": ("layout.zones", ["us-east1-b"], "layout.zones[0]", "zone-not-in-region"),
    "a zone twice": ("layout.zones", ["us-central1-a", "us-central1-a"], "layout.zones", "zone-named-twice"),
    "a range without room": (
        "layout.network_cidr",
        "10.0.0.0/24",
        "layout.network_cidr",
        "network-size-not-supported",
    ),
    "a training plan": (
        "layout.machines.0.purchase",
        {"kind": "training_plan", "arn": "arn:aws:sagemaker:us-west-2:123456789012:training-plan/december"},
        "layout.machines[0].purchase.kind",
        "training-plan-not-on-gcp",
    ),
    "flex-start without GPUs": (
        "layout.machines.0",
        {"name": "cpu", "machine": "n2-standard-8", "purchase": {"kind": "flex_start"}, "max_nodes": 2},
        "layout.machines[0].purchase.kind",
        "purchase-needs-gpus",
    ),
    "a machine that is not sold on demand": (
        "layout.machines.0",
        {"name": "h100", "machine": "a3-highgpu-1g", "purchase": {"kind": "on_demand"}, "max_nodes": 2},
        "layout.machines[0].purchase.kind",
        "purchase-not-offered",
    ),
    "a reservation without its zone": (
        "layout.machines.0.purchase",
        {"kind": "reserved", "id": "projects/example-ml-jobs/reservations/l4"},
        "layout.machines[0].purchase.id",
        "invalid-reservation-name",
    ),
    "a reservation of another region": (
        "layout.machines.0.purchase",
        {"kind": "reserved", "id": "projects/example-ml-jobs/zones/us-east1-b/reservations/l4"},
        "layout.machines[0].purchase.id",
        "reservation-in-other-region",
    ),
    "a machine of AWS": (
        "layout.machines.0.machine",
        "ml.g6.xlarge",
        "layout.machines[0].machine",
        "unknown-job-machine",
    ),
    "a machine that the region lacks": (
        "layout.machines.1.machine",
        "a4x-highgpu-4g",
        "layout.machines[1].machine",
        "unknown-job-machine",
    ),
    "a notebook with a GPU": (
        "layout.notebooks",
        {"machines": ["g2-standard-4"]},
        "layout.notebooks.machines[0]",
        "unknown-notebook-machine",
    ),
    "two machines of notebooks": (
        "layout.notebooks",
        {"machines": ["e2-standard-2", "e2-standard-4"]},
        "layout.notebooks.machines",
        "notebook-has-one-machine",
    ),
    "a disk that is too small": (
        "layout.notebooks",
        {"disk_gib": 5},
        "layout.notebooks.disk_gib",
        "notebook-disk-too-small",
    ),
    "a notebook that idles for two days": (
        "layout.idle_minutes",
        2880,
        "layout.idle_minutes",
        "idle-minutes-not-accepted",
    ),
    "a database that does not exist": (
        "on.database",
        {"tier": "db-custom-3-3840"},
        "on.database.tier",
        "database-processors-not-offered",
    ),
    "a team with too many addresses": (
        "teams.0.alert_emails",
        [f"{name}@example.com" for name in "abcdef"],
        "teams[0].alert_emails",
        "value-not-accepted",
    ),
    "a person who may spend nothing": (
        "layout.people.2.monthly_usd",
        0,
        "layout.people[2].monthly_usd",
        "amount-not-positive",
    ),
    "administrators of a cluster": ("on.admins", ["group:ml@example.com"], "on.admins", "needs-a-cluster"),
    "a release channel": ("on.channel", "regular", "on.channel", "needs-a-cluster"),
    "pods": ("on.pods_per_node", 32, "on.pods_per_node", "needs-a-cluster"),
    "a cache of datasets": ("on.dataset_cache", True, "on.dataset_cache", "needs-a-cluster"),
    "homes": ("data.homes", True, "data.homes", "needs-a-cluster"),
}
BROKEN = {"aws": ON_AWS, "gcp": ON_GCP}


def shipped(cloud: str) -> Values:
    content = json.loads(json.dumps(read(CONFIG / f"Pulumi.small-{cloud}.yaml", "f")))["config"]
    return {key.partition(":")[2]: value for key, value in content.items()}


@pytest.fixture
def small() -> Values:
    return shipped("aws")


@pytest.mark.parametrize(("cloud", "name"), [(cloud, name) for cloud in BROKEN for name in BROKEN[cloud]])
def test_an_invalid_value_is_refused_at_its_path(cloud: str, name: str) -> None:
    path, value, place, code = BROKEN[cloud][name]
    content = shipped(cloud)
    at(content["spec"], path, copy.deepcopy(value))
    assert [(one.code, one.path) for one in problems(content)] == [(code, place)]


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
    small["spec"]["layout"]["people"][0]["name"] = "engineer-with-a-long-name"
    with pytest.raises(UserError) as caught:
        stackspec.load("a-stack-with-a-rather-long-name", small, "f")
    (problem,) = caught.value.problems
    assert (
        problem.path == "layout.people[0].name"
        and "17" in problem.rule
        and problem.code == "job-name-too-long"
    )


@pytest.mark.parametrize("cloud", BROKEN)
def test_a_stack_without_a_cluster_needs_no_part_of_one(cloud: str) -> None:
    assert len((CONFIG / f"Pulumi.small-{cloud}.yaml").read_text().splitlines()) <= 50  # one screen
    spec = stackspec.load("small", shipped(cloud), "f").spec
    assert isinstance(spec.layout, SmallLayout) and (spec.tracking is None) is (cloud == "aws")
    assert not any(getattr(spec.on, name) for name in spec.on.needed_by_clusters if name != "database")


@pytest.mark.parametrize("key", ["tracking", "on.admin_arns", "on.database", "on.repair", "on.efa_driver"])
def test_a_cluster_on_aws_needs_its_parts(values: Values, key: str) -> None:
    at(values["spec"], key, [] if key == "on.admin_arns" else None)
    (problem,) = problems(values)
    assert problem.path == key and problem.code in ("required-key-missing", "too-short")


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        *(
            (f"on.{name}", None, "required-key-missing")
            for name in ("channel", "endpoint", "maintenance", "pods_per_node", "accelerator_networks")
        ),
        ("on.database.tier", "db-f1-micro", "invalid-database-tier"),
    ],
)
def test_a_cluster_on_google_cloud_needs_its_parts(gcp: Values, key: str, value: Any, code: str) -> None:
    at(gcp["spec"], key, value)
    assert [(one.code, one.path) for one in problems(gcp)] == [(code, key)]


def test_the_bill_stops_nothing_in_a_cluster(values: Values) -> None:
    values["spec"]["budget"]["over_budget"] = "stop"
    (problem,) = problems(values)
    assert (problem.code, problem.path) == ("stop-needs-team-budgets", "budget.over_budget")


def test_machines_may_be_those_of_a_reservation_in_a_zone_of_the_region() -> None:
    content = shipped("gcp")
    full = "projects/example-ml-jobs/zones/us-central1-b/reservations/l4"
    at(content["spec"], "layout.machines.0.purchase", {"kind": "reserved", "id": full})
    layout = stackspec.load("small", content, "f").spec.layout
    assert isinstance(layout, SmallLayout) and layout.machines[0].reservation == full


def test_a_tracking_server_needs_an_image() -> None:
    content = shipped("gcp")
    del content["spec"]["tracking"]
    assert [one.path for one in problems(content) if one.path.startswith("tracking")]
