"""ValidatingAdmissionPolicies with their bindings, as plain data (admissionregistration.k8s.io/v1)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from policies.admission.expressions import Expression, expressions
from policies.rules import CATALOG
from policies.settings import RuleSettings

Action = Literal["Deny", "Warn", "Audit"]
Body = dict[str, Any]
_API_VERSION = "admissionregistration.k8s.io/v1"
_ANNOTATION = "trainstack.dev/policy"
SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces of the cluster itself, which are exempt."""
# Updates by controllers are exempt: of an object that is older than a policy, Kueue could else not suspend a
# job, to preempt or end it. What a member changes is judged in the member's own request.
_CONTROLLERS = [
    f"system:serviceaccounts:{namespace}"
    for namespace in ("kube-system", "kueue-system", "jobset-system", "kubeflow-system")
]
_BY_OTHERS = (
    "request.operation != 'UPDATE' || (request.userInfo.username != 'system:kube-controller-manager'"
    f" && !request.userInfo.?groups.orValue([]).exists(group, group in {_CONTROLLERS}))"
)


def manifests(
    settings: RuleSettings | None = None, actions: Sequence[Action] = ("Deny",), but: Sequence[str] = SYSTEM
) -> list[Body]:
    """A policy and a binding for each rule that judges a single object.

    `actions` are the validation actions, `but` lists exempt namespaces.
    """
    chosen = expressions(settings or RuleSettings())
    return [body for expression in chosen for body in _both(expression, actions, but)]


def _both(expression: Expression, actions: Sequence[Action], but: Sequence[str]) -> Iterator[Body]:
    rule, name = CATALOG.rules[expression.rule], expression.rule.lower()
    metadata = {"name": name, "annotations": {_ANNOTATION: rule.id, f"{_ANNOTATION}-severity": rule.severity}}
    yield {
        "apiVersion": _API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": _constraints(expression, but),
            # Objects under deletion are exempt: their finalizers are removed by updates.
            "matchConditions": [
                {"name": "stays", "expression": "!has(object.metadata.deletionTimestamp)"},
                {"name": "by-others-than-controllers", "expression": _BY_OTHERS},
            ],
            "variables": [
                {"name": key, "expression": value.strip()} for key, value in expression.variables.items()
            ],
            "validations": [
                {"expression": expression.holds, "message": f"{rule.id}: {rule.title} {rule.remediation}"}
            ],
        },
    }
    yield {
        "apiVersion": _API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": name, "validationActions": list(actions)},
    }


def _constraints(expression: Expression, but: Sequence[str]) -> Mapping[str, Any]:
    outside = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(but)}
    return {
        "resourceRules": [dict(one) for one in expression.matches],
        **({"namespaceSelector": {"matchExpressions": [outside]}} if but else {}),
    }
