"""Stacks with Slurm on Google Cloud: invalid values are refused, with code and path."""

import copy
from typing import Any

import pytest

from infra import stackspec
from infra.stackspec.document import read
from infra.stackspec.load import CONFIG
from tests.infra.stackspec.stack_files import Values, problems
from tests.stacks.stack_files import at

_POOL = "layout.pools[0]"
_KIND = f"{_POOL}.purchase.kind"
BROKEN: dict[str, tuple[str, Any, str, str]] = {
    "no settings of the service": ("on.director", None, "on.director", "required-key-missing"),
    "an id that is too long": (
        "on.director.cluster_id", "large-slurm", "on.director.cluster_id", "director-id-invalid",
    ),
    "an id that begins with a digit": (
        "on.director.cluster_id", "1a", "on.director.cluster_id", "director-id-invalid",
    ),
    "a version that new clusters do not have": (
        "layout.slurm_version", "25.05", "layout.slurm_version", "director-version-unsupported",
    ),
    "an idle time": ("layout.idle_minutes", 30, "layout.idle_minutes", "not-with-director"),
    "a number of jobs": ("layout.max_jobs", 256, "layout.max_jobs", "not-with-director"),
    "two zones": (
        "layout.zones", ["us-central1-a", "us-central1-b"], "layout.zones", "director-needs-one-zone",
    ),
    "a login node of another series": (
        "layout.login", {"machine": "e2-standard-4"}, "layout.login.machine", "director-login-unsupported",
    ),
    "a login node too large": (
        "layout.login", {"machine": "n2-standard-48"}, "layout.login.machine", "director-login-unsupported",
    ),
    "a machine type of no series": (
        "layout.pools.0.machine", "a2-highgpu-8g", f"{_POOL}.machine", "director-machine-unsupported",
    ),
    "GPUs on demand": (
        "layout.pools.0.purchase", {"kind": "on_demand"}, _KIND, "director-purchase-unsupported",
    ),
    "nodes that start together": (
        "layout.pools.0.purchase", {"kind": "queued"}, _KIND, "director-purchase-unsupported",
    ),
    "a block of a reservation": (
        "layout.pools.0.purchase",
        {"kind": "reserved", "id": "projects/p/reservations/r/reservationBlocks/b"},
        f"{_POOL}.purchase.id",
        "director-reservation-invalid",
    ),
    "a name with a meaning of its own": (
        "layout.pools.0.name", "all", f"{_POOL}.name", "slurm-name-reserved",
    ),
    "a partition without nodes": ("layout.pools.0.max_nodes", 0, f"{_POOL}.max_nodes", "greater-than-equal"),
    "quotas": ("teams.0.gpus", {"h100": 8}, "teams[0].gpus", "director-enforces-nothing"),
    "shares": ("teams.0.weight", 2, "teams[0].weight", "director-enforces-nothing"),
    "a gate without shared homes": ("data.homes", False, "data.homes", "slurm-gate-needs-homes"),
    "a size of homes that is not offered": (
        "on.homes_gib", 10241, "on.homes_gib", "filestore-size-not-offered",
    ),
    "settings of a cluster": ("on.channel", "stable", "on.channel", "not-with-slurm"),
    "a database": (
        "on.database",
        {"tier": "db-custom-1-3840", "availability": "zonal", "disk_gib": 10},
        "on.database",
        "not-with-slurm",
    ),
}  # fmt: skip


@pytest.fixture
def values() -> Values:
    config = read(CONFIG / "Pulumi.large-slurm-gcp.yaml", "f")["config"]
    return copy.deepcopy({key.removeprefix("trainstack:"): value for key, value in config.items()})


@pytest.mark.parametrize("case", BROKEN)
def test_what_the_service_refuses_is_refused_by_name(values: Values, case: str) -> None:
    stackspec.load("dev", copy.deepcopy(values), "f")
    steps, value, path, code = BROKEN[case]
    at(values["spec"], steps, value)
    assert (code, path) in [(one.code, one.path) for one in problems(values)]


def test_a_budget_of_a_team_stops_nothing(values: Values) -> None:
    values["spec"]["teams"][0] |= {"monthly_usd": 100, "over_budget": "stop"}
    assert ("director-enforces-nothing", "teams[0].over_budget") in [
        (one.code, one.path) for one in problems(values)
    ]


@pytest.mark.parametrize("stack", ["dev-gcp", "small-gcp"])
def test_settings_of_the_service_need_slurm(stack: str) -> None:
    config = read(CONFIG / f"Pulumi.{stack}.yaml", "f")["config"]
    values = {key.removeprefix("trainstack:"): value for key, value in config.items()}
    values["spec"]["on"]["director"] = {"cluster_id": "research"}
    (problem,) = problems(values)
    assert (problem.code, problem.path) == ("needs-slurm", "on.director")


@pytest.mark.parametrize("name", ["idle_minutes", "max_jobs"])
def test_on_aws_the_values_are_needed(name: str) -> None:
    config = read(CONFIG / "Pulumi.large-slurm-aws.yaml", "f")["config"]
    values = {key.removeprefix("trainstack:"): value for key, value in config.items()}
    values["spec"]["layout"][name] = None
    assert ("required-key-missing", f"layout.{name}") in [(one.code, one.path) for one in problems(values)]
