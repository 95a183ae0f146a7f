"""Slurm in an EKS cluster: invalid values are refused, with code and path."""

import copy
from typing import Any

import pytest

from infra import stackspec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.document import read
from infra.stackspec.load import CONFIG
from tests.infra.stackspec.stack_files import Values, problems
from tests.stacks.stack_files import at

_IMAGE = "ghcr.io/slinkyproject/slurmd:25.11-ubuntu24.04"
_POOL = "layout.pools[0]"
BROKEN: dict[str, tuple[str, Any, str, str]] = {
    "two homes of Slurm": ("on.pcs", {"image_id": "ami-00000000000000000"}, "on.slinky", "slurm-twice"),
    "no home of Slurm": ("on.slinky", None, "on.pcs", "required-key-missing"),
    "nodes that start with the work": (
        "layout.pools.0.min_nodes", 0, f"{_POOL}.min_nodes", "slinky-fixed-size",
    ),
    "nodes that end when they are idle": (
        "layout.idle_minutes", 30, "layout.idle_minutes", "slinky-nodes-stay",
    ),
    "a Slurm too old for the operator": (
        "layout.slurm_version", "25.05", "layout.slurm_version", "slinky-slurm-too-old",
    ),
    "an image by tag": (
        "on.slinky.images.slurmd", _IMAGE, "on.slinky.images.slurmd", "string-pattern-mismatch",
    ),
    "no image": ("on.slinky.images.slurmd", None, "on.slinky.images.slurmd", "string-type"),
    "a directory without TLS": (
        "on.slinky.directory",
        {"uri": "ldap://ldap.example.com", "base": "dc=example"},
        "on.slinky.directory.uri",
        "string-pattern-mismatch",
    ),
    "an unknown version of Kubernetes": (
        "on.slinky.kubernetes_version",
        "1.10",
        "on.slinky.kubernetes_version",
        "kubernetes-version-not-offered",
    ),
    "an API open to all": (
        "on.slinky.api_access", ["0.0.0.0/0"], "on.slinky.api_access[0]", "client-range-too-wide",
    ),
    "no administrator": ("on.admin_arns", [], "on.admin_arns", "too-short"),
    "claimed devices": ("on.efa_driver", "dra", "on.efa_driver", "slinky-without-dra"),
    "the name of a purpose": (
        "layout.pools.0.name", "interactive", f"{_POOL}.name", "slinky-name-of-feature",
    ),
    "the name of a purchase": ("layout.pools.0.name", "spot", f"{_POOL}.name", "slinky-name-of-feature"),
    "the name of the login pod": ("layout.pools.0.name", "login", f"{_POOL}.name", "slurm-name-reserved"),
}  # fmt: skip


@pytest.fixture
def values() -> Values:
    config = read(CONFIG / "Pulumi.large-slinky-aws.yaml", "f")["config"]
    found = {key.removeprefix("trainstack:"): value for key, value in config.items()}
    return copy.deepcopy(found)


def test_the_stack_file_is_accepted(values: Values) -> None:
    on = stackspec.load("large-slinky-aws", values, "f").spec.on
    assert isinstance(on, AwsSpec) and on.slinky


@pytest.mark.parametrize("broken", BROKEN)
def test_a_value_that_the_operator_has_not_is_refused(values: Values, broken: str) -> None:
    path, value, where, code = BROKEN[broken]
    at(values["spec"], path, value)
    assert (where, code) in {(one.path, one.code) for one in problems(values)}


def test_other_profiles_have_no_operator(values: Values) -> None:
    slinky = values["spec"]["on"]["slinky"]
    config = read(CONFIG / "Pulumi.dev-aws.yaml", "f")["config"]
    other: Values = {key.removeprefix("trainstack:"): copy.deepcopy(value) for key, value in config.items()}
    other["spec"]["on"]["slinky"] = slinky
    found = problems(other)
    assert ("on.slinky", "needs-slurm") in {(one.path, one.code) for one in found}
