"""Helpers to read inputs with unknowns: a rule reports nothing about unknown values."""

import json
from collections.abc import Mapping
from typing import Any

from rehearsal.aws.rules.book import AwsContext
from rehearsal.core.model import Properties, Record
from rehearsal.core.properties import at, each, known

EFA_DEVICES = ("efa", "efa-only")


def items(inputs: Properties, name: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The objects of a list with their paths."""
    return [(path, one) for path, one in each(inputs, f"{name}[]") if isinstance(one, Mapping)]


def number(value: Any) -> float | None:
    """A number, or None for other or unknown values."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def text(value: Any) -> str | None:
    """A string, or None for other or unknown values."""
    return value if isinstance(value, str) else None


def given(inputs: Mapping[str, Any], *names: str) -> list[str]:
    """The properties that are set, known or not."""
    return [name for name in names if inputs.get(name) is not None]


def is_set(value: Any) -> bool:
    """Return whether a value is neither empty nor false; an unknown counts as set."""
    return value is not None and (not known(value) or bool(value))


def document(value: Any) -> Any:
    """A JSON document, maybe given as text; None when it cannot be parsed."""
    if not isinstance(value, str):
        return value if isinstance(value, dict) else None
    try:
        return json.loads(value)
    except ValueError:
        return None


def subnets(site: AwsContext, values: Any) -> list[Record]:
    """The subnets that exist among the given ids."""
    found = [site.find(value, "ec2/subnet:Subnet") for value in values] if isinstance(values, list) else []
    return [subnet for subnet in found if subnet is not None]


def zones(found: list[Record]) -> list[str]:
    """The zones of subnets, sorted."""
    return sorted({str(subnet.outputs.get("availabilityZone")) for subnet in found})


def vpcs(found: list[Record]) -> set[str]:
    """The VPCs of subnets."""
    return {str(subnet.outputs.get("vpcId")) for subnet in found}


def all_known(values: Any) -> bool:
    """Return whether a value is a list of known items."""
    return isinstance(values, list) and all(known(value) for value in values)


def vpc_of_group(site: AwsContext, value: Any) -> str | None:
    """The VPC of a security group that exists."""
    group = site.find(value, "ec2/securityGroup:SecurityGroup")
    return text(group.outputs.get("vpcId")) if group else None


def named(record: Record) -> str:
    """Name of another resource in a refusal."""
    return record.urn or record.id


def template_of(site: AwsContext, inputs: Properties) -> Record | None:
    """The launch template of a node group."""
    name = at(inputs, "launchTemplate.id") or at(inputs, "launchTemplate.name")
    return site.find(name, "ec2/launchTemplate:LaunchTemplate")


def trusts(role: Record, service: str, action: str = "sts:AssumeRole") -> bool:
    """Return whether a role's trust policy allows `action` to a service, or cannot be parsed.

    An explicit Deny wins where it has no conditions: what they are about is not known before a call. `*` is
    every principal, services too: IAM User Guide, "AWS global condition context keys",
    `aws:PrincipalIsAWSService`.
    """
    policy = document(role.outputs.get("assumeRolePolicy"))
    if not isinstance(policy, dict):
        return True
    allowed = False
    for statement in many(policy.get("Statement")):
        if not isinstance(statement, dict):
            continue
        everyone = "*" in principals(statement, "AWS")
        named_there = {service, "*"} & principals(statement, "Service")
        if not {action, "sts:*", "*"} & set(map(str, many(statement.get("Action")))):
            continue
        if statement.get("Effect") == "Deny" and not statement.get("Condition"):
            if named_there or everyone:
                return False
        elif statement.get("Effect") == "Allow" and named_there:
            allowed = True
    return allowed


def principals(statement: Mapping[str, Any], kind: str) -> set[str]:
    """Principals of a policy statement, of a kind: AWS or Service; * is every principal."""
    named_there = statement.get("Principal")
    return set(map(str, many(named_there.get(kind) if isinstance(named_there, dict) else named_there)))


def many(value: Any) -> list[Any]:
    """One value or several, as a list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
