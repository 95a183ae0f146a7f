"""Namespaces, queues and clusters: alternatives pass, unevaluated objects are undetermined."""

from typing import Any

import pytest

from policies.resource import Resource
from tests.policies.rules.kubernetes.test_pods import one, results

FENCED = {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}, "namespace": None}
TEAM = one("core/v1:Namespace", "team-vision", metadata=FENCED)
EKS, GKE = "aws:eks/cluster:Cluster", "gcp:container/cluster:Cluster"


def policy(**spec: Any) -> Resource:
    return one("networking.k8s.io/v1:NetworkPolicy", "default", spec=spec)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([policy(podSelector={})], "pass"),
        ([policy(podSelector={}, ingress=[{"from": [{"podSelector": {}}]}])], "pass"),
        ([policy(podSelector={}, policyTypes=["Egress"])], "fail"),
        ([policy(podSelector={"matchLabels": {"app": "mlflow"}})], "fail"),
        ([policy(podSelector={}), policy(podSelector={}, ingress=[{}])], "fail"),
        ([one("cilium.io/v2:CiliumNetworkPolicy", spec={})], "undetermined"),
        ([], "fail"),
    ],
)
def test_a_namespace_denies_by_default(others: list[Resource], expected: str) -> None:
    assert results("MLS-K8S-03", TEAM, *others) == {expected}


def test_a_level_that_limits_nothing_is_none() -> None:
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    free = one("core/v1:Namespace", "team-vision", metadata={"labels": labels})
    assert results("MLS-K8S-03", free, policy(podSelector={})) == {"fail"}


def test_a_quota_of_some_pods_is_none_of_the_team() -> None:
    hard = {"requests.nvidia.com/gpu": "8"}
    quota = one("core/v1:ResourceQuota", spec={"hard": hard})
    assert results("MLS-K8S-05", TEAM, quota) == {"pass"}
    scoped = one("core/v1:ResourceQuota", spec={"hard": hard, "scopes": ["BestEffort"]})
    assert results("MLS-K8S-05", TEAM, scoped) == {"fail"}


def test_a_namespace_is_of_a_team_where_people_may_write() -> None:
    plain = one("core/v1:Namespace", "research")
    assert results("MLS-K8S-05", plain) == {"not-applicable"}
    role = {"kind": "ClusterRole", "name": "edit"}
    people = [{"kind": "Group", "name": "research"}]
    where = {"namespace": "research"}
    binding = "rbac.authorization.k8s.io/v1:RoleBinding"
    bound = one(binding, metadata=where, roleRef=role, subjects=people)
    assert results("MLS-K8S-05", plain, bound) == {"fail"}
    machine = one(binding, metadata=where, roleRef=role, subjects=[{"kind": "ServiceAccount", "name": "x"}])
    assert results("MLS-K8S-05", plain, machine) == {"not-applicable"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"matchLabels": {"team": "vision"}}, "pass"),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, "pass"),
        ({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]}, "fail"),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}, "fail"),
        ({}, "fail"),
        (None, "not-applicable"),
    ],
)
def test_a_queue_names_its_namespaces(selector: Any, expected: str) -> None:
    for version in ("v1beta1", "v1beta2"):
        queue = one(f"kueue.x-k8s.io/{version}:ClusterQueue", spec={"namespaceSelector": selector})
        assert results("MLS-K8S-08", queue) == {expected}


def cluster(kind: str, **props: Any) -> Resource:
    return Resource(kind, "cluster", "cluster", id="train", props={"name": "train", **props})


def addon(values: str) -> Resource:
    props = {"clusterName": "train", "addonName": "vpc-cni", "configurationValues": values}
    return Resource("aws:eks/addon:Addon", "addon", "addon", props=props)


DENY = policy(podSelector={})
ENFORCED = {"enableNetworkPolicy": "true"}
AUTO = {"computeConfig": {"enabled": True}}
CONFIG = {"name": "amazon-vpc-cni", "namespace": "kube-system"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([cluster(EKS)], "fail"),
        ([cluster(EKS), addon('{"enableNetworkPolicy": true}')], "pass"),
        ([cluster(EKS), addon("enableNetworkPolicy: 'true'")], "undetermined"),
        ([cluster(EKS, **AUTO)], "fail"),
        (
            [
                cluster(EKS, **AUTO),
                one("core/v1:ConfigMap", metadata=CONFIG, data={"enable-network-policy-controller": "true"}),
            ],
            "pass",
        ),
        ([cluster(EKS), one("helm.sh/v3:Release", chart="cilium")], "pass"),
        ([cluster(EKS), one("helm.sh/v3:Release", chart="aws-vpc-cni")], "fail"),
        ([cluster(EKS), one("helm.sh/v3:Release", chart="aws-vpc-cni", values=ENFORCED)], "pass"),
        ([cluster(GKE, networkPolicy={"enabled": True})], "pass"),
        ([cluster(GKE, enableAutopilot=True)], "pass"),
        ([cluster(GKE)], "fail"),
    ],
)
def test_network_policies_are_enforced(found: list[Resource], expected: str) -> None:
    assert results("MLS-K8S-09", DENY, *found) == {expected}


def test_a_cluster_without_network_policies_needs_no_engine() -> None:
    assert results("MLS-K8S-09", cluster(EKS)) == {"not-applicable"}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.35", "pass"),
        ("1.36", "pass"),
        ("1.33", "fail"),
        ("1.30", "undetermined"),
        ("1.37", "undetermined"),
    ],
)
def test_a_version_is_in_standard_support(version: str, expected: str) -> None:
    logs = ["api", "audit", "authenticator"]
    assert results("MLS-K8S-07", cluster(EKS, version=version, enabledClusterLogTypes=logs)) == {expected}
