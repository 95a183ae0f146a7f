"""Policies in the place of a Pod Security Standard: the stack's own takes it, and no weaker one does."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from components.kubernetes.queueing.admission import policies as shipped
from components.kubernetes.queueing.node_access import NAME
from infra.launchers.gcp import gke
from policies.resource import Resource
from tests.components.kubernetes.queueing.pools import gpu_flavor
from tests.policies.rules.kubernetes.test_pods import judge, one, results

LABELS = {"trainstack.dev/queueing": "required", "pod-security.kubernetes.io/enforce": "privileged"}
DENIED = one(
    "networking.k8s.io/v1:NetworkPolicy", metadata={"namespace": "team"}, spec={"policyTypes": ["Ingress"]}
)


def namespace(**labels: str) -> Resource:
    return one("core/v1:Namespace", "team", metadata={"namespace": None, "labels": LABELS | labels})


def policies(change: Callable[[Any, Any], object] = lambda policy, binding: None) -> list[Resource]:
    """What the stack ships where pods of a run see their node, changed in one policy and its binding."""
    found = shipped([{**gpu_flavor(), "pod": gke.tcpxo(["net"] * 8)}], [])
    mine = [deepcopy(body) for body in found if body["metadata"]["name"] == NAME]
    change(*(body["spec"] for body in mine))
    return [
        Resource(f"kubernetes:admissionregistration.k8s.io/v1:{body['kind']}", body["kind"], NAME, props=body)
        for body in mine
    ]


def test_the_policy_that_the_stack_ships_takes_the_place_of_a_standard() -> None:
    assert results("MLS-K8S-03", namespace(), DENIED, *policies()) == {"pass"}
    assert results("MLS-K8S-03", namespace(), DENIED) == {"fail"}


def test_only_a_policy_that_the_settings_name_does() -> None:
    said = judge("MLS-K8S-03", namespace(), DENIED, *policies(), pod_security_policies=())
    assert ["privileged" in one.message for one in said] == [True]


def test_it_has_to_be_about_the_namespace() -> None:
    other = namespace(**{"trainstack.dev/queueing": "no"})
    (found,) = judge("MLS-K8S-03", other, DENIED, *policies())
    assert "trainstack-node" in found.message


def _without(word: str) -> Callable[[Any, Any], object]:
    def change(policy: Any, _: Any) -> None:
        policy["validations"] = [row for row in policy["validations"] if word not in row["expression"]]

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_without("hostPath"), "does not mention hostPath"),
        (_without("privileged"), "does not mention privileged"),
        (_without("seccompProfile"), "does not mention seccompProfile"),
        (lambda policy, _: policy.pop("variables"), "does not mention initContainers"),
        (lambda policy, _: policy.update(failurePolicy="Ignore"), "admits pods on errors"),
        (lambda policy, _: policy.update(matchConditions=[{}]), "does not match every pod there"),
        (
            lambda policy, _: policy["matchConstraints"]["resourceRules"][0].update(operations=["CREATE"]),
            "does not match UPDATE pods, UPDATE pods/ephemeralcontainers",
        ),
        (
            lambda policy, _: policy["matchConstraints"]["resourceRules"][0].update(resources=["pods"]),
            "does not match UPDATE pods/ephemeralcontainers",
        ),
        (
            lambda policy, _: policy["matchConstraints"].update(objectSelector={"matchLabels": {"a": "b"}}),
            "does not match every pod there",
        ),
        (
            lambda policy, _: policy["matchConstraints"].update(
                namespaceSelector={"matchExpressions": [{"key": "x", "operator": "Exists"}]}
            ),
            "does not match every pod there",
        ),
        (
            lambda _, binding: binding.update(validationActions=["Warn", "Audit"]),
            "has no binding that denies",
        ),
        (lambda _, binding: binding.update(policyName="other"), "has no binding that denies"),
        (
            lambda _, binding: binding.update(
                matchResources={"namespaceSelector": {"matchLabels": {"team": "x"}}}
            ),
            "has no binding that denies",
        ),
    ],
)
def test_a_weaker_policy_does_not_replace_the_standard(
    change: Callable[[Any, Any], object], words: str
) -> None:
    (found,) = judge("MLS-K8S-03", namespace(), DENIED, *policies(change))
    assert found.result == "fail"
    assert words in found.message


def test_any_resource_counts_that_pods_are_among() -> None:
    def wide(policy: Any, _: Any) -> None:
        every = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*", "pods/*"]}
        policy["matchConstraints"]["resourceRules"] = [every]

    assert results("MLS-K8S-03", namespace(), DENIED, *policies(wide)) == {"pass"}
