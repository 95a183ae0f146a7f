"""Examples of the rules K8S."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.policies.recording.example import DROP, Example, Made, Resources

_QUEUES = "kubernetes:kueue.x-k8s.io/v1beta2"
# Kinds that have to be defined first, with their scope.
_CUSTOM = {
    "kubernetes:jobset.x-k8s.io/v1alpha2:JobSet": "Namespaced",
    "kubernetes:kubeflow.org/v1:PyTorchJob": "Namespaced",
    "kubernetes:eks.amazonaws.com/v1:NodeClass": "Cluster",
    "kubernetes:karpenter.sh/v1:NodePool": "Cluster",
    f"{_QUEUES}:ClusterQueue": "Cluster",
    f"{_QUEUES}:LocalQueue": "Namespaced",
    f"{_QUEUES}:ResourceFlavor": "Cluster",
}
IMAGE = "docker.io/library/train@sha256:" + "ab" * 32
GPUS = {"nvidia.com/gpu": "8", "memory": "64Gi"}
_MEMORY = {
    "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    "mounts": [{"name": "shm", "mountPath": "/dev/shm"}],
}


def known(token: str, scope: str = "Namespaced") -> dict[str, Made]:
    """The definition of a custom kind, without which no cluster has it."""
    group, version, kind = token.removeprefix("kubernetes:").replace("/", ":").split(":")
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x_kubernetes_preserve_unknown_fields": True}}
    spec = {
        "group": group,
        "scope": scope,
        "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
        "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
    }
    token = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
    return {f"{kind}-kind": Made(token, {"metadata": {"name": f"{plural}.{group}"}, "spec": spec})}


def with_kinds(resources: Resources) -> dict[str, Made]:
    """The same resources, after the definitions of their kinds, where they have custom ones."""
    made: dict[str, Made] = {}
    for name, one in resources.items():
        custom = _CUSTOM.get(one.token)
        kinds = known(one.token, custom) if custom else {}
        made = {**made, **kinds, name: replace(one, after=[*one.after, *kinds])}
    return made


def container(**more: Any) -> dict[str, Any]:
    """A container of a training job."""
    return {"name": "train", "image": IMAGE, "command": ["torchrun", "train.py"], **more}


def job(pod: Mapping[str, Any], **spec: Any) -> Made:
    """A Job of these pods."""
    template = {"spec": {"restartPolicy": "Never", **pod}}
    ends = {"backoffLimit": 0, "activeDeadlineSeconds": 3600, **spec}
    kept = {key: value for key, value in ends.items() if value is not DROP}
    return Made(
        "kubernetes:batch/v1:Job",
        {"metadata": {"name": "train", "namespace": "default"}, "spec": {**kept, "template": template}},
    )


def jobset(**container_of: Any) -> Made:
    """A JobSet of one job of two pods."""
    pod = {"restartPolicy": "Never", "containers": [container(**container_of)]}
    below = {"backoffLimit": 0, "completions": 2, "parallelism": 2, "template": {"spec": pod}}
    return Made(
        "kubernetes:jobset.x-k8s.io/v1alpha2:JobSet",
        {
            "metadata": {"name": "train", "namespace": "default"},
            "spec": {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": below}}]},
        },
    )


def pytorch_job(deadline: Any, pod: Mapping[str, Any]) -> Made:
    """A job of Kubeflow's training operator."""
    policy = {"backoffLimit": 2, "activeDeadlineSeconds": deadline}
    kept = {key: value for key, value in policy.items() if value is not DROP}
    replica = {"replicas": 2, "restartPolicy": "OnFailure", "template": {"spec": pod}}
    return Made(
        "kubernetes:kubeflow.org/v1:PyTorchJob",
        {
            "metadata": {"name": "train", "namespace": "default"},
            "spec": {"runPolicy": kept, "pytorchReplicaSpecs": {"Worker": replica}},
        },
    )


def gpu_job(resources: Mapping[str, Any], mounted: bool = True, **spec: Any) -> Made:
    """A Job of one container with these resources; it is not awaited, because no node has the GPUs."""
    made = job(_gpus(resources, mounted), **spec)
    metadata = {**made.props["metadata"], "annotations": {"pulumi.com/skipAwait": "true"}}
    return made.but(metadata=metadata)


def _plain(**more: Any) -> dict[str, Any]:
    return {"containers": [container(**more)]}


def _gpus(resources: Mapping[str, Any], mounted: bool = True) -> dict[str, Any]:
    mounts = {"volumeMounts": _MEMORY["mounts"]} if mounted else {}
    return {
        "containers": [container(resources=resources, **mounts)],
        **({"volumes": _MEMORY["volumes"]} if mounted else {}),
    }


def _device_plugin(kind: str) -> Made:
    pods = {"app": "plugin"}
    agent = {
        "name": "plugin",
        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
        "securityContext": {"privileged": True},
    }
    template = {"metadata": {"labels": pods}, "spec": {"hostNetwork": True, "containers": [agent]}}
    return Made(
        f"kubernetes:apps/v1:{kind}",
        {
            "metadata": {"name": "plugin", "namespace": "default"},
            "spec": {"selector": {"matchLabels": pods}, "template": template},
        },
    )


def namespace(**labels: str) -> Made:
    """The namespace of a team."""
    return Made("kubernetes:core/v1:Namespace", {"metadata": {"name": "team-vision", "labels": labels}})


_FENCED = {"pod-security.kubernetes.io/enforce": "baseline"}


def _policy(**spec: Any) -> Made:
    return Made(
        "kubernetes:networking.k8s.io/v1:NetworkPolicy",
        {"metadata": {"name": "default", "namespace": "team-vision"}, "spec": spec},
        after=["team"],
    )


DENY = _policy(podSelector={}, policyTypes=["Ingress"])


def cluster_queue(selector: Any, resource: str = "nvidia.com/gpu") -> Made:
    """A ClusterQueue with a quota of one resource, open to the namespaces of a selector."""
    flavor = {"name": "a100", "resources": [{"name": resource, "nominalQuota": "8"}]}
    groups = [{"coveredResources": [resource], "flavors": [flavor]}]
    spec = {"resourceGroups": groups, **({} if selector is DROP else {"namespaceSelector": selector})}
    return Made(f"{_QUEUES}:ClusterQueue", {"metadata": {"name": "vision"}, "spec": spec})


_LOCAL_QUEUE = Made(
    f"{_QUEUES}:LocalQueue",
    {"metadata": {"name": "train", "namespace": "team-vision"}, "spec": {"clusterQueue": "vision"}},
)
_QUOTA = Made(
    "kubernetes:core/v1:ResourceQuota",
    {
        "metadata": {"name": "gpus", "namespace": "team-vision"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "8"}},
    },
)
MINE = {"matchLabels": {"kubernetes.io/metadata.name": "team-vision"}}
_TRUST = (
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",'
    ' "Principal": {"Service": "eks.amazonaws.com"}}]}'
)
_SUBNET = "aws:ec2/subnet:Subnet"
EKS = {
    "vpc": Made("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16"}),
    "a": Made(_SUBNET, {"vpcId": "$vpc", "cidrBlock": "10.0.0.0/24", "availabilityZone": "us-east-1a"}),
    "b": Made(_SUBNET, {"vpcId": "$vpc", "cidrBlock": "10.0.1.0/24", "availabilityZone": "us-east-1b"}),
    "role": Made("aws:iam/role:Role", {"assumeRolePolicy": _TRUST}),
    "cluster": Made(
        "aws:eks/cluster:Cluster", {"roleArn": "$role.arn", "vpcConfig": {"subnetIds": ["$a", "$b"]}}
    ),
}
_LOGS = ["api", "audit", "authenticator"]
_GKE = {
    "location": "us-central1",
    "initialNodeCount": 1,
    "loggingConfig": {"enableComponents": ["SYSTEM_COMPONENTS"]},
    "releaseChannel": {"channel": "REGULAR"},
}


def _eks(version: str) -> dict[str, Made]:
    return {**EKS, "cluster": EKS["cluster"].but(version=version, enabledClusterLogTypes=_LOGS)}


_EXAMPLES = {
    "MLS-K8S-01": Example(
        {"job": job(_plain()), "agent": _device_plugin("DaemonSet")},
        {"job": job(_plain(securityContext={"privileged": True}))},
        at="job",
        path="spec.template.spec.containers[0].securityContext.privileged",
    ),
    "MLS-K8S-01.deployment": Example(
        {"agent": _device_plugin("DaemonSet")},
        {"agent": _device_plugin("Deployment")},
        at="agent",
        path="spec.template.spec.containers[0].securityContext.privileged",
    ),
    "MLS-K8S-01.jobset": Example(
        {"job": jobset()},
        {"job": jobset(securityContext={"privileged": True})},
        at="job",
        path="spec.replicatedJobs[0].template.spec.template.spec.containers[0].securityContext.privileged",
    ),
    "MLS-K8S-02": Example(
        {"job": job(_plain()), "agent": _device_plugin("DaemonSet")},
        {"job": job({**_plain(), "hostPID": True})},
        at="job",
        path="spec.template.spec.hostPID",
    ),
    "MLS-K8S-03": Example(
        {"team": namespace(**_FENCED), "policy": DENY},
        {"team": namespace(**_FENCED)},
        at="team",
        path="metadata.name",
    ),
    "MLS-K8S-03.label": Example(
        {"team": namespace(**_FENCED), "policy": DENY},
        {"team": namespace(), "policy": DENY},
        at="team",
        path="metadata.labels",
    ),
    "MLS-K8S-03.open": Example(
        {"team": namespace(**_FENCED), "policy": DENY},
        {"team": namespace(**_FENCED), "policy": _policy(podSelector={}, ingress=[{}])},
        at="team",
        path="metadata.name",
    ),
    "MLS-K8S-04": Example(
        {"job": gpu_job({"limits": GPUS})},
        {"job": gpu_job({"limits": GPUS}, mounted=False)},
        at="job",
        path="spec.template.spec.containers[0].volumeMounts",
    ),
    "MLS-K8S-04.memory": Example(
        {"job": gpu_job({"limits": GPUS})},
        {"job": gpu_job({"limits": {"nvidia.com/gpu": "8"}})},
        at="job",
        path="spec.template.spec.containers[0].resources.limits",
    ),
    "MLS-K8S-04.pytorch": Example(
        {"job": pytorch_job(60, _gpus({"limits": GPUS}))},
        {"job": pytorch_job(60, _gpus({"limits": GPUS, "requests": {"nvidia.com/gpu": "4"}}))},
        at="job",
        path="spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].resources.requests",
    ),
    "MLS-K8S-05": Example(
        {"team": namespace(), "quota": _QUOTA}, {"team": namespace()}, at="team", path="metadata.name"
    ),
    "MLS-K8S-05.kueue": Example(
        {"team": namespace(), "queue": cluster_queue(MINE), "local": _LOCAL_QUEUE},
        {"team": namespace(), "queue": cluster_queue(MINE, "cpu"), "local": _LOCAL_QUEUE},
        at="team",
        path="metadata.name",
    ),
    "MLS-K8S-06": Example(
        {"job": job(_plain())},
        {"job": job(_plain(), activeDeadlineSeconds=DROP)},
        at="job",
        path="spec.activeDeadlineSeconds",
    ),
    "MLS-K8S-06.retries": Example(
        {"job": job(_plain())}, {"job": job(_plain(), backoffLimit=DROP)}, at="job", path="spec.backoffLimit"
    ),
    "MLS-K8S-06.pytorch": Example(
        {"job": pytorch_job(60, _plain())},
        {"job": pytorch_job(DROP, _plain())},
        at="job",
        path="spec.runPolicy.activeDeadlineSeconds",
    ),
    "MLS-K8S-07": Example(_eks("1.35"), _eks("1.32"), at="cluster", path="version"),
    "MLS-K8S-07.logs": Example(
        _eks("1.35"),
        {**EKS, "cluster": EKS["cluster"].but(version="1.35")},
        at="cluster",
        path="enabledClusterLogTypes",
    ),
    "MLS-K8S-07.gke": Example(
        {"cluster": Made("gcp:container/cluster:Cluster", _GKE)},
        {
            "cluster": Made(
                "gcp:container/cluster:Cluster", {**_GKE, "releaseChannel": {"channel": "UNSPECIFIED"}}
            )
        },
        at="cluster",
        path="releaseChannel.channel",
    ),
}

EXAMPLES = {
    key: replace(one, passing=with_kinds(one.passing), failing=with_kinds(one.failing))
    for key, one in _EXAMPLES.items()
}
