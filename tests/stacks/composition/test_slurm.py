"""A Slurm system on AWS: policies on its nodes, and a customer's key for their disks."""

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from policies.resource import Resource
from tests.stacks.composition import judged
from tests.stacks.composition.composed import composed

PAIR = ("large-slurm", "aws")
STACK = "large-slurm-aws"
KEY = "arn:aws:kms:us-east-1:123456789012:key/22222222-3333-4444-5555-666666666666"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


@functools.cache
def resources() -> list[Resource]:
    return judged.resources(composed(PAIR), "us-east-1")


def test_every_policy_holds() -> None:
    outcomes = judged.verdicts(resources(), STACK)
    assert judged.reported(outcomes, "fail") == judged.reported(outcomes, "undetermined") == []


def test_the_key_of_disks_is_that_of_the_stack_file() -> None:
    def keys(graph: Any) -> set[str | None]:
        templates = graph.all("ec2/launchTemplate:LaunchTemplate").values()
        return {disk["ebs"].get("kmsKeyId") for one in templates for disk in one["blockDeviceMappings"]}

    assert keys(composed(PAIR)) == {None}
    assert keys(composed(PAIR, lambda spec: spec["on"].update(disk_key_arn=KEY))) == {KEY}


Worse = Callable[[dict[str, Any]], object]


def _without_budget(found: list[Resource]) -> list[Resource]:
    return [one for one in found if one.kind != "aws:budgets/budget:Budget"]


def test_a_system_without_a_budget_is_a_violation() -> None:
    """Machine types are named in groups of the service alone."""
    failed = judged.reported(judged.verdicts(_without_budget(resources()), STACK), "fail")
    assert {"MLS-COST-01", "MLS-COST-04"} <= {line.split()[0] for line in failed}


@pytest.mark.parametrize(
    ("rule", "kind", "worse"),
    [
        ("MLS-IAM-05", TEMPLATE, lambda props: props["metadataOptions"].update(httpTokens="optional")),
        (
            "MLS-STO-09",
            TEMPLATE,
            lambda props: props["blockDeviceMappings"][0]["ebs"].update(encrypted="false"),
        ),
        ("MLS-NET-02", TEMPLATE, lambda props: props.get("networkInterfaces", [0]).pop()),
    ],
)
def test_a_careless_launch_template_is_a_violation(rule: str, kind: str, worse: Worse) -> None:
    changed = []
    for one in resources():
        props = json.loads(json.dumps(dict(one.props)))
        if one.kind == kind:
            worse(props)
        changed.append(replace(one, props=props, asked=props))
    failed = judged.reported(judged.verdicts(changed, STACK), "fail")
    assert rule in {line.split()[0] for line in failed}
