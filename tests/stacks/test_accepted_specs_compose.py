"""What the spec accepts, the components compose: no rule has a second home that says something else."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pytest
from pulumi.runtime import MockResourceArgs

from infra import spec
from infra.errors import UserError
from infra.spec.document import read
from infra.spec.load import CONFIG
from stacks import compose
from tests.components.recorder import deploy

Values = dict[str, Any]

COMPUTED: Mapping[str, Callable[[MockResourceArgs], Mapping[str, object]]] = {
    "aws:eks/cluster:Cluster": lambda args: {
        "endpoint": "https://k8s.example",
        "certificateAuthority": {"data": "Q0E="},
        "vpcConfig": {**args.inputs["vpcConfig"], "clusterSecurityGroupId": "sg-cluster"},
    },
    "aws:ec2/launchTemplate:LaunchTemplate": lambda _: {"latestVersion": 1},
    "aws:eks/nodeGroup:NodeGroup": lambda args: {
        "nodeGroupName": args.name,
        "resources": [{"autoscalingGroups": [{"name": "asg"}]}],
    },
    "aws:rds/cluster:Cluster": lambda _: {
        "endpoint": "db.example",
        "masterUserSecrets": [{"secretArn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:db"}],
    },
}


def shipped() -> Values:
    """What the shipped environment says, as plain values."""
    settings = read(CONFIG / "Pulumi.dev-aws.yaml", "f")["config"]
    return {name.removeprefix("trainstack:"): value for name, value in settings.items()}


def changed(steps: tuple[str | int, ...], value: Any) -> Values:
    values = copy.deepcopy(shipped())
    place: Any = values["spec"]
    for step in steps[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    place[steps[-1]] = value
    return values


def outcome(values: Values) -> str:
    """ "refused" by the spec, or "composed"; the components refuse nothing."""
    try:
        loaded = spec.load("dev-aws", values, "f")
    except UserError:
        return "refused"

    def program() -> Mapping[str, pulumi.Output[Any]]:
        compose(loaded.spec)
        return {}

    deploy(program, COMPUTED)
    return "composed"


CASES: dict[str, tuple[tuple[str | int, ...], Any, str]] = {
    "nothing changed": (("owner",), "a@example.com", "composed"),
    "every GPU promised without a gate": (("smoke",), {"pool": "a100"}, "composed"),
    "a weight that Kueue takes": (("teams", 0, "weight"), 1000, "composed"),
    "a weight beyond": (("teams", 0, "weight"), 5000, "refused"),
    "DRA on a recent Kubernetes": (("cluster", "efa_driver"), "dra", "composed"),
    "an address twice": (("budget", "alert_emails"), ["a@example.com", "a@example.com"], "refused"),
    "the loopback range": (("network", "cidr"), "127.0.0.0/16", "refused"),
    "a link-local range": (("network", "cidr"), "169.254.0.0/16", "refused"),
    "the smallest range": (("network", "cidr"), "10.0.0.0/20", "composed"),
}


@pytest.mark.parametrize("case", CASES)
def test_spec_and_components_agree(case: str) -> None:
    steps, value, expected = CASES[case]
    values = changed(steps, value)
    if case.startswith("every GPU"):
        values["spec"]["smoke"] = {**shipped()["spec"]["smoke"], "enabled": False, "schedule": None}
        values["spec"]["teams"][0]["gpus"] = {"a100": 24, "l4": 2}
    assert outcome(values) == expected


def test_dra_on_an_older_kubernetes_is_refused() -> None:
    values = changed(
        ("cluster",), {**shipped()["spec"]["cluster"], "efa_driver": "dra", "kubernetes_version": "1.34"}
    )
    assert outcome(values) == "refused"
