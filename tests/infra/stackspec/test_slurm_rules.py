"""Stacks with Slurm: invalid values are refused, with code and path."""

import copy
import datetime
from typing import Any

import pytest

from infra import slurm, stackspec
from infra.catalog.aws.pcs import pcs, version_problems
from infra.stackspec.document import read
from infra.stackspec.load import CONFIG
from tests.infra.stackspec.stack_files import Values, problems
from tests.stacks.stack_files import at

DAY = datetime.date(2026, 11, 29)
_POOL = "layout.pools[0]"
BROKEN: dict[str, tuple[str, Any, str, str]] = {
    "an unknown version": (
        "layout.slurm_version", "22.05", "layout.slurm_version", "pcs-version-unknown",
    ),
    "a version past its end": ("layout.slurm_version", "24.11", "layout.slurm_version", "pcs-version-ended"),
    "a controller too small for the pools": (
        "layout.pools.0.max_nodes", 40, "on.pcs.size", "pcs-size-too-small",
    ),
    "a controller too small for the jobs": ("layout.max_jobs", 257, "on.pcs.size", "pcs-size-too-small"),
    "a name with a meaning of its own": (
        "layout.pools.0.name", "default", f"{_POOL}.name", "slurm-name-reserved",
    ),
    "the name of the login node": ("layout.pools.0.name", "login", f"{_POOL}.name", "slurm-name-reserved"),
    "a name too short for PCS": ("layout.pools.0.name", "p4", f"{_POOL}.name", "pcs-name-invalid"),
    "a name too long for PCS": ("layout.pools.0.name", "p" * 26, f"{_POOL}.name", "pcs-name-invalid"),
    "a team that is an account of Slurm": ("teams.0.name", "Root", "teams[0].name", "slurm-name-reserved"),
    "a partition without nodes": ("layout.pools.0.max_nodes", 0, f"{_POOL}.max_nodes", "greater-than-equal"),
    "more GPUs guaranteed than there are": (
        "teams.0.gpus.p4d", 49, f"{_POOL}.max_nodes", "guarantees-exceed-pool",
    ),
    "a quota in an unknown pool": ("teams.0.gpus.h100", 8, "teams[0].gpus.h100", "unknown-pool"),
    "RDMA over two zones": (
        "layout.pools.0.zones", ["us-east-1a", "us-east-1b"], f"{_POOL}.zones", "rdma-needs-one-zone",
    ),
    "no machine image": ("on.pcs", None, "on.pcs", "required-key-missing"),
    "an image by name": ("on.pcs.image_id", "latest", "on.pcs.image_id", "string-pattern-mismatch"),
    "hours": (
        "layout.pools.0.hours",
        {"days": ["MO"], "start": "20:00", "hours": 8, "classes": ["sweep"]},
        f"{_POOL}.hours",
        "not-with-slurm",
    ),
    "a team with more than all": (
        "teams.0.monthly_usd", 350001, "teams[0].monthly_usd", "team-budget-above-stack",
    ),
    "a scheduled gate": ("smoke.schedule", "0 5 * * 1", "smoke.schedule", "not-with-slurm"),
    "a login node with GPUs": (
        "layout.login", {"machine": "g6.2xlarge"}, "layout.login.machine", "unknown-cpu-type",
    ),
}  # fmt: skip


@pytest.fixture
def values() -> Values:
    config = read(CONFIG / "Pulumi.large-slurm-aws.yaml", "f")["config"]
    found = {key.removeprefix("trainstack:"): value for key, value in config.items()}
    found["spec"]["on"]["pcs"]["size"] = "SMALL"
    return copy.deepcopy(found)


@pytest.mark.parametrize("case", BROKEN)
def test_what_slurm_or_the_service_refuses_is_refused_by_name(values: Values, case: str) -> None:
    stackspec.load("dev", copy.deepcopy(values), "f")
    steps, value, path, code = BROKEN[case]
    at(values["spec"], steps, value)
    assert (code, path) in [(one.code, one.path) for one in problems(values)]


def test_a_controller_is_as_large_as_pools_and_jobs_need() -> None:
    sizes = [
        (32, 256, "SMALL"),
        (33, 256, "MEDIUM"),
        (32, 257, "MEDIUM"),
        (513, 1, "LARGE"),
        (9999, 1, "LARGE"),
    ]
    assert [pcs.size_for(nodes, jobs) for nodes, jobs, _ in sizes] == [size for *_, size in sizes]


@pytest.mark.parametrize(
    ("version", "on", "code"),
    [
        ("25.05", DAY, None),
        ("25.05", datetime.date(2026, 11, 30), "pcs-version-ended"),
        ("25.11", DAY, None),
        ("24.05", DAY, "pcs-version-ended"),
    ],
)
def test_a_version_is_accepted_until_its_end(version: str, on: datetime.date, code: str | None) -> None:
    assert [one.code for one in version_problems("p", version, on)] == ([code] if code else [])


def test_settings_of_pcs_need_slurm() -> None:
    config = read(CONFIG / "Pulumi.dev-aws.yaml", "f")["config"]
    values = {key.removeprefix("trainstack:"): value for key, value in config.items()}
    values["spec"]["on"]["pcs"] = {"image_id": "ami-0123456789abcdef0"}
    (problem,) = problems(values)
    assert (problem.code, problem.path) == ("needs-slurm", "on.pcs")


def test_slurm_render_takes_the_same_file() -> None:
    spec = stackspec.load_file("large-slurm-aws").spec
    system = slurm.system(spec, slurm.SystemOptions(version="25.11"))
    assert [one.name for one in system.partitions] == ["p4d", "l4-spot", "cpu"]
    assert {one.name: dict(one.quotas) for one in system.accounts}["research"] == {"p4d": 48, "l4-spot": 2}
    assert "GrpTRESMins=billing=7200000000" in slurm.files(system)["accounts.sh"]
