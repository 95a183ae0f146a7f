"""Policies of the API server for queued namespaces, with their bindings (plain data)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from components.kubernetes.queueing.kueue_values import MANAGED, MANAGED_LABEL

Body = dict[str, Any]

_API_VERSION = "admissionregistration.k8s.io/v1"
# Namespaces with a queue.
QUEUED: Body = {"matchLabels": {MANAGED_LABEL: MANAGED}}


@dataclass(frozen=True)
class Policy:
    """A ValidatingAdmissionPolicy that denies in every namespace with a queue.

    `only_from` is a CEL condition on the request: others are not asked. `refusals` are pairs of
    expression and message; a message says what to do instead.
    """

    name: str
    rules: Sequence[Body]
    refusals: Sequence[tuple[str, str]]
    variables: Mapping[str, str] = field(default_factory=dict)
    only_from: str = ""
    quota: str = ""
    """ResourceQuota of the namespace that expressions read as `params`; without it nothing is refused."""

    def objects(self) -> list[Body]:
        """The policy and its binding."""
        spec: Body = {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": QUEUED,
                "resourceRules": list(self.rules),
            },
            "validations": [
                {"expression": expression, "message": message} for expression, message in self.refusals
            ],
        }
        if self.only_from:
            spec["matchConditions"] = [{"name": "requester", "expression": self.only_from}]
        binding: Body = {"validationActions": ["Deny"]}
        if self.quota:
            spec["paramKind"] = {"apiVersion": "v1", "kind": "ResourceQuota"}
            binding["paramRef"] = {"name": self.quota, "parameterNotFoundAction": "Allow"}
        return _bound("Validating", self.name, spec, self.variables, binding)


@dataclass(frozen=True)
class Mutation:
    """A MutatingAdmissionPolicy that completes or cleans objects in every namespace with a queue.

    `patches` are CEL expressions of a JSON patch each. `condition` is a CEL condition: other objects stay.
    """

    name: str
    rules: Sequence[Body]
    patches: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    condition: str = ""
    failure_policy: Literal["Fail", "Ignore"] = "Ignore"

    def objects(self) -> list[Body]:
        """The policy and its binding."""
        spec: Body = {
            "failurePolicy": self.failure_policy,
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": QUEUED,
                "resourceRules": list(self.rules),
            },
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": patch.strip()}}
                for patch in self.patches
            ],
        }
        if self.condition:
            spec["matchConditions"] = [{"name": "written", "expression": self.condition}]
        return _bound("Mutating", self.name, spec, self.variables, {})


def _bound(
    effect: str, name: str, spec: Body, variables: Mapping[str, str], binding: Mapping[str, Any]
) -> list[Body]:
    """A policy and its binding."""
    if variables:
        spec["variables"] = [{"name": key, "expression": text.strip()} for key, text in variables.items()]
    objects = {"": spec, "Binding": {"policyName": name, **binding}}
    return [
        {
            "apiVersion": _API_VERSION,
            "kind": f"{effect}AdmissionPolicy{suffix}",
            "metadata": {"name": name},
            "spec": body,
        }
        for suffix, body in objects.items()
    ]


def rule(
    group: str, *resources: str, operations: Sequence[str] = ("CREATE",), versions: Sequence[str] = ("*",)
) -> Body:
    """Requests that a policy is asked about."""
    return {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "operations": list(operations),
        "resources": list(resources),
    }
