"""What the spec accepts, the components compose: no rule has a second home that says something else."""

import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest
from hypothesis import HealthCheck, given, settings

from infra import stackspec
from infra.errors import UserError
from infra.stackspec.document import read
from infra.stackspec.load import CONFIG
from stacks import compose
from tests.components.aws.computed import COMPUTED
from tests.components.recorder import deploy
from tests.stacks.stack_files import Values, at, stack_files


def shipped() -> Values:
    """What the shipped environment says, as plain values."""
    settings = read(CONFIG / "Pulumi.dev-aws.yaml", "f")["config"]
    return {name.removeprefix("trainstack:"): value for name, value in settings.items()}


def changed(changes: Mapping[str, Any]) -> Values:
    """The shipped environment with values at paths such as `teams.0.weight`."""
    values = copy.deepcopy(shipped())
    for path, value in changes.items():
        at(values["spec"], path, value)
    return values


def outcome(values: Values) -> str:
    """What becomes of a stack file: `refused` by the spec, or `composed`; components refuse nothing."""
    try:
        loaded = stackspec.load("dev-aws", values, "f")
    except UserError:
        return "refused"

    def program() -> Mapping[str, pulumi.Output[Any]]:
        compose(loaded.spec)
        return {}

    deploy(program, COMPUTED)
    return "composed"


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing changed": ({}, "composed"),
    "every GPU promised without a gate": (
        {"smoke.enabled": False, "smoke.schedule": None, "teams.0.gpus": {"a100": 24, "l4": 2}},
        "composed",
    ),
    "every GPU promised beside a gate": ({"teams.0.gpus": {"a100": 24, "l4": 2}}, "refused"),
    "the largest weight": ({"teams.0.weight": 1000}, "composed"),
    "a weight beyond it": ({"teams.0.weight": 5000}, "refused"),
    "DRA on a recent Kubernetes": ({"on.efa_driver": "dra", "layout.pools.0.min_nodes": 1}, "composed"),
    "DRA in a pool that starts empty": ({"on.efa_driver": "dra"}, "refused"),
    "DRA on an older Kubernetes": (
        {"on.efa_driver": "dra", "layout.pools.0.min_nodes": 1, "layout.kubernetes_version": "1.34"},
        "refused",
    ),
    "an address twice": ({"budget.alert_emails": ["a@example.com", "a@example.com"]}, "refused"),
    "eleven addresses": ({"budget.alert_emails": [f"a{n}@example.com" for n in range(11)]}, "refused"),
    "a budget without end": ({"budget.anomaly_usd": float("inf")}, "refused"),
    "the loopback range": ({"layout.network_cidr": "127.0.0.0/16"}, "refused"),
    "a link-local range": ({"layout.network_cidr": "169.254.0.0/16"}, "refused"),
    "a shared range": ({"layout.network_cidr": "100.64.0.0/16"}, "composed"),
    "the smallest range": ({"layout.network_cidr": "10.0.0.0/20"}, "composed"),
    "the range that AWS services use": ({"layout.network_cidr": "172.17.0.0/16"}, "refused"),
    "a pool zone twice": ({"layout.pools.0.zones": ["us-east-1b", "us-east-1b"]}, "refused"),
    "a pool larger than EKS manages": ({"layout.pools.1.max_nodes": 451}, "refused"),
    "a period that CloudWatch does not know": ({"data.log_retention_days": 100}, "refused"),
    "a misspelt endpoint": ({"on.endpoints": ["ecr.drk"]}, "refused"),
    "an endpoint twice": ({"on.endpoints": ["sts", "sts"]}, "refused"),
    "a system type that does not exist": ({"layout.system_pool.machine": "m6i.xlrge"}, "refused"),
    "a system type on Graviton": ({"layout.system_pool.machine": "m7g.xlarge"}, "composed"),
    "a GPU type in more zones than offer it": (
        {
            "layout.zones": [f"us-east-1{letter}" for letter in "abcde"],
            "layout.pools.0.zones": [f"us-east-1{letter}" for letter in "abcde"],
            "layout.pools.0.rdma": False,
        },
        "refused",
    ),
    "a session as administrator": (
        {"on.admin_arns": ["arn:aws:sts::123456789012:assumed-role/platform/me"]},
        "refused",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_spec_and_components_agree(case: str) -> None:
    changes, expected = CASES[case]
    assert outcome(changed(changes)) == expected


def test_whatever_the_spec_accepts_is_composed() -> None:
    outcomes: Counter[str] = Counter()

    @settings(max_examples=16, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(values=stack_files())
    def check(values: Values) -> None:
        outcomes[outcome(values)] += 1

    check()
    assert min(outcomes["composed"], outcomes["refused"]) >= 3, outcomes
