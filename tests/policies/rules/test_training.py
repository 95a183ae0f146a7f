"""Stacks for training: rules about accelerators apply only to them."""

from typing import Any

import pytest

from policies.resource import Resource, UnknownValue
from tests.policies.rules.judging import made, results

GROUP, TEMPLATE = "aws:eks/nodeGroup:NodeGroup", "aws:ec2/launchTemplate:LaunchTemplate"
CLUSTER, GKE = "aws:eks/cluster:Cluster", "gcp:container/cluster:Cluster"
RULES = ("MLS-COST-01", "MLS-COST-04", "MLS-GPU-06")
T4 = {"machineType": "n1-standard-8", "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 4}]}


def shop(**props: Any) -> Resource:
    """A node group as of a web shop, which nothing repairs."""
    return made(GROUP, "shop", **{"instanceTypes": ["m6i.large"], **props})


def said(*stack: Resource) -> dict[str, str]:
    """By rule, the worst result."""
    order = ("fail", "undetermined", "pass", "not-applicable")
    return {rule: min(results(rule, *stack), key=order.index) for rule in RULES}


def all_say(result: str) -> dict[str, str]:
    return dict.fromkeys(RULES, result)


def deployment(**resources: Any) -> Resource:
    pod = {"spec": {"containers": [{"name": "a", "resources": resources}]}}
    return made("kubernetes:apps/v1:Deployment", "d", spec={"template": pod})


def karpenter(*requirements: dict[str, Any]) -> Resource:
    return made(
        "kubernetes:karpenter.sh/v1:NodePool",
        "np",
        spec={"template": {"spec": {"requirements": [*requirements]}}},
    )


OTHERS = {
    "nothing else": [],
    "a cluster": [made(CLUSTER, "c")],
    "a cluster of GKE": [made(GKE, "c", removeDefaultNodePool=True)],
    "a template": [made(TEMPLATE, "lt", instanceType="c7g.large")],
    "pods without GPUs": [deployment(limits={"memory": "1Gi"})],
    "a chart": [made("kubernetes:helm.sh/v3:Release", "r", chart="nginx")],
    "machines without GPUs on demand": [
        karpenter({"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m"]})
    ],
    "no GPUs on demand": [
        karpenter({"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "DoesNotExist"}),
        karpenter({"key": "node.kubernetes.io/instance-type", "operator": "NotIn", "values": ["g6.xlarge"]}),
    ],
}
SIGNS = {
    "another pool": [made(GROUP, "gpus", instanceTypes=["p4d.24xlarge"], nodeRepairConfig={"enabled": True})],
    "a template": [made(TEMPLATE, "lt", instanceType="g6.xlarge")],
    "a machine": [made("aws:ec2/instance:Instance", "i", instanceType="trn1.2xlarge")],
    "a pool of GKE": [made("gcp:container/nodePool:NodePool", "p", nodeConfig=T4)],
    "provisioning": [
        made(
            GKE,
            "c",
            enableAutopilot=True,
            clusterAutoscaling={
                "enabled": True,
                "resourceLimits": [{"resourceType": "nvidia-l4", "maximum": 4}],
            },
        )
    ],
    "a queue": [made("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", "q")],
    "a job": [made("kubernetes:kubeflow.org/v1:PyTorchJob", "j")],
    "an operator": [
        made("kubernetes:helm.sh/v3:Release", "r", chart="oci://ghcr.io/kubeflow/charts/kubeflow-trainer")
    ],
    "a chart": [made("kubernetes:helm.sh/v4:Chart", "r", chart="kueue")],
    "pods with GPUs": [deployment(limits={"nvidia.com/gpu": "1"})],
    "GPUs on demand": [
        karpenter({"key": "eks.amazonaws.com/instance-gpu-count", "operator": "Gt", "values": ["0"]})
    ],
    "families on demand": [
        karpenter({"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m6i", "g6"]})
    ],
    "categories on demand": [
        karpenter({"key": "eks.amazonaws.com/instance-category", "operator": "In", "values": ["c", "p"]})
    ],
    "machines on demand": [
        karpenter({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]})
    ],
}


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_a_web_shop_is_left_alone(others: list[Resource]) -> None:
    assert said(shop(), *others) == all_say("not-applicable")


@pytest.mark.parametrize("signs", SIGNS.values(), ids=SIGNS)
def test_in_a_stack_for_training_every_pool_counts(signs: list[Resource]) -> None:
    assert said(shop(), *signs) == all_say("fail")


def test_an_unknown_machine_may_have_accelerators() -> None:
    foreign = made(GROUP, "foreign", launchTemplate={"id": "lt-1"})
    later = shop(instanceTypes=UnknownValue("instanceTypes", "is not known yet"))
    for unknown in (foreign, later):
        assert said(unknown) == all_say("undetermined")
        assert said(unknown, *SIGNS["a machine"]) == all_say("fail")


def test_what_holds_holds_without_asking_for_machines() -> None:
    later = shop(
        instanceTypes=UnknownValue("instanceTypes", "is not known yet"), nodeRepairConfig={"enabled": True}
    )
    answered = {"subscriberEmailAddresses": ["a@example.com"], "thresholdType": "PERCENTAGE", "threshold": 80}
    kinds = ("ACTUAL", "FORECASTED")
    alerts = [{**answered, "notificationType": kind} for kind in kinds]
    budget = made("aws:budgets/budget:Budget", "b", limitAmount="1000", notifications=alerts)
    assert said(later, budget) == all_say("pass")
