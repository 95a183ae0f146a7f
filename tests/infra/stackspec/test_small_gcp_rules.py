"""A stack without a cluster on Google Cloud: what its stack file must say, and what means nothing in it."""

import copy
import json
from typing import Any

import pytest

from infra import stackspec
from infra.stackspec.document import read
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import SmallLayout
from infra.stackspec.load import CONFIG
from tests.infra.stackspec.stack_files import Values, problems
from tests.stacks.stack_files import at

BROKEN: dict[str, tuple[str, Any, str]] = {
    "a zone of another region": ("layout.zones", ["us-east1-b"], "layout.zones[0]"),
    "a zone twice": ("layout.zones", ["us-central1-a", "us-central1-a"], "layout.zones"),
    "a range without room": ("layout.network_cidr", "10.0.0.0/24", "layout.network_cidr"),
    "a training plan": (
        "layout.machines.0.purchase",
        {"kind": "training_plan", "arn": "arn:aws:sagemaker:us-west-2:123456789012:training-plan/december"},
        "layout.machines[0].purchase.kind",
    ),
    "a reservation without its zone": (
        "layout.machines.0.purchase",
        {"kind": "reserved", "id": "projects/example-ml-jobs/reservations/l4"},
        "layout.machines[0].purchase.id",
    ),
    "a reservation of another region": (
        "layout.machines.0.purchase",
        {"kind": "reserved", "id": "projects/example-ml-jobs/zones/us-east1-b/reservations/l4"},
        "layout.machines[0].purchase.id",
    ),
    "a machine of AWS": ("layout.machines.0.machine", "ml.g6.xlarge", "layout.machines[0].machine"),
    "a machine that the region lacks": (
        "layout.machines.1.machine",
        "a4x-highgpu-4g",
        "layout.machines[1].machine",
    ),
    "a notebook with a GPU": (
        "layout.notebooks",
        {"machines": ["g2-standard-4"]},
        "layout.notebooks.machines[0]",
    ),
    "two machines of notebooks": (
        "layout.notebooks",
        {"machines": ["e2-standard-2", "e2-standard-4"]},
        "layout.notebooks.machines",
    ),
    "a disk that is too small": ("layout.notebooks", {"disk_gib": 5}, "layout.notebooks.disk_gib"),
    "a notebook that idles for two days": ("layout.idle_minutes", 2880, "layout.idle_minutes"),
    "a database that does not exist": (
        "on.database",
        {"tier": "db-custom-3-3840"},
        "on.database.tier",
    ),
    "a team with too many addresses": (
        "teams.0.alert_emails",
        [f"{name}@example.com" for name in "abcdef"],
        "teams[0].alert_emails",
    ),
    "a person who may spend nothing": (
        "layout.people.2.monthly_usd",
        0,
        "layout.people[2].monthly_usd",
    ),
    "administrators of a cluster": ("on.admins", ["group:ml@example.com"], "on.admins"),
    "a release channel": ("on.channel", "regular", "on.channel"),
    "pods": ("on.pods_per_node", 32, "on.pods_per_node"),
    "a cache of datasets": ("on.dataset_cache", True, "on.dataset_cache"),
    "homes": ("data.homes", True, "data.homes"),
}


@pytest.fixture
def small() -> Values:
    content = json.loads(json.dumps(read(CONFIG / "Pulumi.small-gcp.yaml", "f")))["config"]
    return {key.partition(":")[2]: value for key, value in content.items()}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_is_refused_at_its_place(small: Values, name: str) -> None:
    path, value, place = BROKEN[name]
    at(small["spec"], path, copy.deepcopy(value))
    found = problems(small)
    assert [problem.path for problem in found] == [place], found
    assert all(problem.rule and problem.fix for problem in found)


def test_machines_may_be_those_of_a_reservation_in_a_zone_of_the_region(small: Values) -> None:
    full = "projects/example-ml-jobs/zones/us-central1-b/reservations/l4"
    at(small["spec"], "layout.machines.0.purchase", {"kind": "reserved", "id": full})
    layout = stackspec.load("small", small, "f").spec.layout
    assert isinstance(layout, SmallLayout) and layout.machines[0].reservation == full


def test_a_tracking_server_needs_an_image(small: Values) -> None:
    del small["spec"]["tracking"]
    found = problems(small)
    assert [problem.path for problem in found if problem.path.startswith("tracking")]


def test_the_shipped_stack_file_fits_one_screen() -> None:
    assert len((CONFIG / "Pulumi.small-gcp.yaml").read_text().splitlines()) <= 50


def test_a_stack_without_a_cluster_needs_no_part_of_one(small: Values) -> None:
    spec = stackspec.load("small", small, "f").spec
    assert isinstance(spec.on, GcpSpec)
    assert (spec.on.channel, spec.on.maintenance, spec.on.pods_per_node, spec.on.admins) == (
        None,
        None,
        None,
        (),
    )


@pytest.mark.parametrize(
    "key", ["channel", "endpoint", "maintenance", "pods_per_node", "accelerator_networks"]
)
def test_a_cluster_still_has_to_say_what_only_it_has(gcp: Values, key: str) -> None:
    at(gcp["spec"], f"on.{key}", None)
    assert [problem.path for problem in problems(gcp)] == [f"on.{key}"]


def test_the_database_of_a_cluster_has_cores_of_its_own(gcp: Values) -> None:
    at(gcp["spec"], "on.database.tier", "db-f1-micro")
    (problem,) = problems(gcp)
    assert problem.path == "on.database.tier" and "db-custom" in problem.rule
