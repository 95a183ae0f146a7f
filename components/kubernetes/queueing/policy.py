"""A policy of the API server for queued namespaces, with its binding (plain data)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
        if self.variables:
            spec["variables"] = [{"name": key, "expression": text} for key, text in self.variables.items()]
        if self.only_from:
            spec["matchConditions"] = [{"name": "requester", "expression": self.only_from}]
        bound = {"policyName": self.name, "validationActions": ["Deny"]}
        return [
            admission_object("ValidatingAdmissionPolicy", self.name, spec),
            admission_object("ValidatingAdmissionPolicyBinding", self.name, bound),
        ]


def admission_object(kind: str, name: str, spec: Body) -> Body:
    """An object of the API group for admission."""
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


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
