"""Examples of rules about what EKS, Kueue and MLflow do since 2026: K8S-08, GPU-10, IAM-08, TRK-06 and on."""

import json
from dataclasses import replace
from typing import Any

from tests.policies.examples.kubernetes import (
    DENY,
    EKS,
    GPUS,
    IMAGE,
    MINE,
    cluster_queue,
    container,
    gpu_job,
    job,
    namespace,
    with_kinds,
)
from tests.policies.recording.example import Example, Made

_POLICIES = {"team": namespace(), "policy": DENY}
_TRUST = (
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["sts:AssumeRole",'
    ' "sts:TagSession"], "Principal": {"Service": "capabilities.eks.amazonaws.com"}}]}'
)
_NODES = (
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",'
    ' "Principal": {"Service": "ec2.amazonaws.com"}}]}'
)
_SECRETS = (
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:CreateBucket",'
    ' "Resource": "*"}]}'
)


def _addon(values: str) -> dict[str, Made]:
    addon = {"clusterName": "$cluster.name", "addonName": "vpc-cni", "configurationValues": values}
    return {**EKS, **_POLICIES, "addon": Made("aws:eks/addon:Addon", addon)}


def _gke(**props: Any) -> dict[str, Made]:
    cluster = {"location": "us-central1", "initialNodeCount": 1, **props}
    return {**_POLICIES, "cluster": Made("gcp:container/cluster:Cluster", cluster)}


def _capability(role: dict[str, Made], protect: bool = True) -> dict[str, Made]:
    props = {
        "capabilityName": "ack",
        "clusterName": "$cluster.name",
        "type": "ACK",
        "roleArn": "$maker.arn",
        "deletePropagationPolicy": "RETAIN",
    }
    made = replace(Made("aws:eks/capability:Capability", props), protect=protect)
    maker = Made("aws:iam/role:Role", {"assumeRolePolicy": _TRUST})
    return {**EKS, "maker": maker, **role, "ack": made}


_SOME = {"some": Made("aws:iam/rolePolicy:RolePolicy", {"role": "$maker", "policy": _SECRETS})}
_ALL = {
    "all": Made(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        {"role": "$maker.name", "policyArn": "arn:aws:iam::aws:policy/AdministratorAccess"},
    )
}


def _nodes(life: str | None, capacity: list[str], **spec: Any) -> dict[str, Made]:
    named = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "gpu"}
    wanted = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity}]
    nodes = {"nodeClassRef": named, "requirements": wanted, **({"expireAfter": life} if life else {})}
    return {
        "class": Made(
            "kubernetes:eks.amazonaws.com/v1:NodeClass", {"metadata": {"name": "gpu"}, "spec": spec}
        ),
        "pool": Made(
            "kubernetes:karpenter.sh/v1:NodePool",
            {"metadata": {"name": "gpu"}, "spec": {"template": {"spec": nodes}}},
        ),
    }


_RESERVED = {"role": "nodes", "capacityReservationSelectorTerms": [{"id": "cr-0123456789abcdef0"}]}


def _long(days: int, life: str | None = None) -> dict[str, Made]:
    return {
        **_nodes(life, ["on-demand"]),
        "job": gpu_job({"limits": GPUS}, activeDeadlineSeconds=days * 86400),
    }


def _logged_in(secret: str) -> Made:
    name = "MLFLOW_TRACKING_PASSWORD"
    source = {"secretKeyRef": {"name": secret, "key": name}}
    return job({"containers": [container(env=[{"name": name, "valueFrom": source}])]})


def _password(secret: str) -> Made:
    return Made(
        "kubernetes:core/v1:Secret",
        {"metadata": {"name": secret, "namespace": "default"}, "type": "Opaque", "data": {}},
    )


def _mlflow(*words: str) -> Made:
    pods = {"app": "mlflow"}
    server = {"name": "mlflow", "image": IMAGE, "command": ["mlflow", "server", "--host", "0.0.0.0", *words]}
    template = {"metadata": {"labels": pods}, "spec": {"containers": [server]}}
    return Made(
        "kubernetes:apps/v1:Deployment",
        {
            "metadata": {"name": "mlflow", "namespace": "default"},
            "spec": {"selector": {"matchLabels": pods}, "template": template},
        },
    )


def _versions(**said: str) -> dict[str, Made]:
    props = {"clusterName": "$cluster.name", "addonName": "kube-proxy", **said}
    return {**EKS, "addon": Made("aws:eks/addon:Addon", props)}


def _chart(version: str) -> dict[str, Made]:
    props = {"chart": "oci://registry.k8s.io/jobset/charts/jobset", "name": "jobset", "version": version}
    return {"chart": Made("kubernetes:helm.sh/v3:Release", {**props, "namespace": "default"})}


_PLUGIN = "nvidia.com/device-plugin.config"


def _flavored(*teams: str) -> dict[str, Made]:
    """A flavor for nodes with the label of a pool, and the queues of teams that use it."""
    metadata = {"name": "notebooks"}
    spec = {"nodeLabels": {"pool": "notebooks"}}
    found = {
        "flavor": Made(
            "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor", {"metadata": metadata, "spec": spec}
        )
    }
    quota = {"name": "notebooks", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "8"}]}
    for team in teams:
        groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [quota]}]
        selector = {"matchLabels": {"team": team}}
        made = cluster_queue(selector)
        found[team] = made.but(
            metadata={"name": team}, spec={"resourceGroups": groups, "namespaceSelector": selector}
        )
    return found


def _plugin() -> Made:
    """The configurations of the device plugin, one with turns."""
    slicing = {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}
    texts = {"whole": '{"version": "v1"}', "turns": json.dumps({"version": "v1", "sharing": slicing})}
    return Made(
        "kubernetes:core/v1:ConfigMap",
        {"metadata": {"name": "plugin-configs", "namespace": "default"}, "data": texts},
    )


def _eks_pool(config: str) -> dict[str, Made]:
    props = {
        "clusterName": "$cluster.name",
        "nodeRoleArn": "$nodes.arn",
        "subnetIds": ["$a"],
        "instanceTypes": ["g6.12xlarge"],
        "scalingConfig": {"desiredSize": 0, "minSize": 0, "maxSize": 2},
        "labels": {"pool": "notebooks", _PLUGIN: config},
    }
    nodes = Made("aws:iam/role:Role", {"assumeRolePolicy": _NODES})
    return {**EKS, "nodes": nodes, "plugin": _plugin(), "pool": Made("aws:eks/nodeGroup:NodeGroup", props)}


_EXAMPLES = {
    "MLS-K8S-12": Example(
        {**_eks_pool("turns"), **_flavored("vision")},
        {**_eks_pool("turns"), **_flavored("vision", "speech")},
        at="flavor",
        path="metadata.name",
    ),
    "MLS-K8S-11": Example(
        _versions(addonVersion="v1.35.3-eksbuild.2"), _versions(), at="addon", path="addonVersion"
    ),
    "MLS-K8S-11.chart": Example(_chart("0.12.0"), _chart("0.12"), at="chart", path="version"),
    "MLS-K8S-08": Example(
        {"queue": cluster_queue(MINE)},
        {"queue": cluster_queue({})},
        at="queue",
        path="spec.namespaceSelector",
    ),
    "MLS-K8S-09": Example(
        _addon('{"enableNetworkPolicy": "true"}'), _addon("{}"), at="addon", path="configurationValues"
    ),
    "MLS-K8S-09.gke": Example(
        _gke(datapathProvider="ADVANCED_DATAPATH"), _gke(), at="cluster", path="datapathProvider"
    ),
    "MLS-K8S-10": Example(
        _capability(_SOME), _capability(_SOME, protect=False), at="ack", path="deletePropagationPolicy"
    ),
    "MLS-IAM-08": Example(_capability(_SOME), _capability(_ALL), at="ack", path="roleArn"),
    "MLS-GPU-10": Example(_long(10), _long(15), at="job", path="spec.activeDeadlineSeconds"),
    "MLS-GPU-10.never": Example(
        _long(20, "Never"), _long(22, "Never"), at="job", path="spec.activeDeadlineSeconds"
    ),
    "MLS-GPU-11": Example(
        _nodes(None, ["reserved", "on-demand"], **_RESERVED),
        _nodes(None, ["on-demand"], **_RESERVED),
        at="class",
        path="spec.capacityReservationSelectorTerms",
    ),
    "MLS-TRK-06": Example(
        {"secret": _password("mlflow-login"), "job": _logged_in("mlflow-login")},
        {"secret": _password("mlflow-admin"), "job": _logged_in("mlflow-admin")},
        at="job",
        path="spec.template.spec.containers[0].env[0].valueFrom.secretKeyRef.name",
    ),
    "MLS-TRK-07": Example(
        {"server": _mlflow("--app-name", "basic-auth")},
        {"server": _mlflow()},
        at="server",
        path="spec.template.spec.containers[0].command",
    ),
}
EXAMPLES = {
    key: replace(one, passing=with_kinds(one.passing), failing=with_kinds(one.failing))
    for key, one in _EXAMPLES.items()
}
