"""Environment of pods in a cluster: nodes, devices, queues, volumes, identities."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from components.aws.pools.user_data import encoded, node_user_data
from components.kubernetes.gpu_sharing import plugin_values
from rehearsal.core.model import InitFailedError, RefusalError
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.controllers.nodes import nodes
from tests.rehearsal.kubernetes.harness import (
    ACCOUNT,
    ACCOUNT_KIND,
    JOB,
    RELEASE,
    Rehearsed,
    job,
    script_pod,
)

VOLUME, CLAIM = "kubernetes:core/v1:PersistentVolume", "kubernetes:core/v1:PersistentVolumeClaim"
PLUGIN = {
    "chart": "nvidia-device-plugin", "repositoryOpts": {"repo": "https://nvidia.github.io/k8s-device-plugin"},
    "name": "plugin", "namespace": "kube-system",
}  # fmt: skip
GPU = "nvidia.com/gpu"
TAINT = [{"key": GPU, "value": "present", "effect": "NO_SCHEDULE"}]
POOL = {"trainstack.dev/pool": "train"}
PRINT_ENV = "import json, os; print(json.dumps(dict(os.environ)))"


def gpu_pod(count: int) -> dict[str, Any]:
    return script_pod(
        "env",
        container={"resources": {"limits": {GPU: str(count)}}},
        nodeSelector=POOL,
        tolerations=[{"key": GPU, "operator": "Exists"}],
    )


def printed(rehearsed: Rehearsed, name: str) -> dict[str, str]:
    """The environment that a Job's pod printed."""
    text = next((rehearsed.home / "logs" / "lab").glob(f"{name}-*.log")).read_text()
    found: dict[str, str] = json.loads(text.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("ami", "values", "message"),
    [
        ("AL2023_x86_64_NVIDIA", None, "Insufficient nvidia.com/gpu"),  # no device plugin at all
        ("AL2023_x86_64_NVIDIA", {}, "Insufficient nvidia.com/gpu"),  # needs a node label that nothing sets
        ("AL2023_x86_64_STANDARD", {"gfd": {"enabled": True}}, "Insufficient nvidia.com/gpu"),  # no driver
        ("AL2023_x86_64_NVIDIA", {"gfd": {"enabled": True}}, ""),
    ],
)
def test_gpus_need_image_and_device_plugin(
    rehearsed: Rehearsed, ami: str, values: dict[str, Any] | None, message: str
) -> None:
    rehearsed.node_group("gpu", "g5.12xlarge", taints=TAINT, amiType=ami, labels=POOL)
    rehearsed.namespace()
    rehearsed.config_map("env", {"main.py": PRINT_ENV})
    if values is not None:
        rehearsed.create(RELEASE, {**PLUGIN, "values": values}, "plugin")
    if not message:
        rehearsed.create(JOB, job("train", gpu_pod(4)), "train")
        return
    with pytest.raises(InitFailedError, match="timed out waiting to be Ready") as failed:
        rehearsed.create(JOB, job("train", gpu_pod(4)), "train", timeout_s=0.6)
    assert any("nodes are available" in reason and message in reason for reason in failed.value.reasons)


@pytest.mark.parametrize(
    ("configuration", "pods"),
    [("turns-4", 4), (None, 1), ("turns-8", 0)],
    ids=["named", "default", "missing"],
)
def test_the_plugin_registers_a_gpu_as_often_as_the_nodes_configuration_says(
    rehearsed: Rehearsed, configuration: str | None, pods: int
) -> None:
    slicing = {"resources": [{"name": GPU, "replicas": 4}]}
    configs = {"whole": {"version": "v1"}, "turns-4": {"version": "v1", "sharing": {"timeSlicing": slicing}}}
    labels = POOL | ({"nvidia.com/device-plugin.config": configuration} if configuration else {})
    rehearsed.node_group("gpu", "g6.xlarge", taints=TAINT, amiType="AL2023_x86_64_NVIDIA", labels=labels)
    config = {"default": "whole", "map": {name: json.dumps(each) for name, each in configs.items()}}
    values = {"gfd": {"enabled": True}, "config": config}
    rehearsed.create(RELEASE, {**PLUGIN, "values": values}, "plugin")
    (record,) = rehearsed.state.find(type="aws:eks/cluster:Cluster")
    found = [node for node in nodes(KubeCluster(rehearsed.state, record)) if node.group == "gpu"]
    assert {int(node.extended.get(GPU, 0)) for node in found} == {pods}


@pytest.mark.parametrize(
    ("configuration", "environment", "gpus"),
    [("partitions", {}, 56), (None, {}, 56), ("partitions", {"migStrategy": "none"}, 8)],
    ids=["single", "label gone before the parts", "overridden"],
)
def test_the_plugin_registers_the_parts_that_the_boot_configuration_makes(
    rehearsed: Rehearsed, configuration: str | None, environment: dict[str, str], gpus: int
) -> None:
    boot = encoded(node_user_data(local_nvme=True, with_efa=False, partitions=["1g.5gb"] * 7))
    rehearsed.aws("aws:ec2/launchTemplate:LaunchTemplate", "lt-1", {"userData": boot}, {"name": "lt"})
    labels = POOL | ({"nvidia.com/device-plugin.config": configuration} if configuration else {})
    rehearsed.node_group(
        "gpu",
        "p4d.24xlarge",
        taints=TAINT,
        amiType="AL2023_x86_64_NVIDIA",
        labels=labels,
        launchTemplate={"id": "lt-1"},
    )
    values = {"gfd": {"enabled": True}, **plugin_values([{"kind": "mig", "partition": "1g.5gb"}])}
    rehearsed.create(RELEASE, {**PLUGIN, "values": {**values, **environment}}, "plugin")
    (record,) = rehearsed.state.find(type="aws:eks/cluster:Cluster")
    found = [node for node in nodes(KubeCluster(rehearsed.state, record)) if node.group == "gpu"]
    assert {int(node.extended.get(GPU, 0)) for node in found} == {gpus}


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="GPUs are not emulated here")
def test_jobs_on_emulated_gpus_take_turns(rehearsed: Rehearsed) -> None:
    rehearsed.node_group("gpu", "g5.12xlarge", taints=TAINT, amiType="AL2023_x86_64_NVIDIA", labels=POOL)
    rehearsed.create(RELEASE, {**PLUGIN, "values": {"gfd": {"enabled": True}}}, "plugin")
    rehearsed.namespace()
    said = rehearsed.home / "said"
    lines = [
        "import time",
        "for word in 'be':",
        f"    open({str(said)!r}, 'a').write(word)",
        "    time.sleep(1)",
    ]
    rehearsed.config_map("env", {"main.py": "\n".join(lines)})
    names = ("one", "two")
    threads = [
        threading.Thread(target=rehearsed.create, args=(JOB, job(name, gpu_pod(4)), name)) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said.read_text() == "bebe"


def test_growth_without_an_autoscaler_is_warned_about(rehearsed: Rehearsed) -> None:
    scaling = {"minSize": 0, "maxSize": 2, "desiredSize": 0}
    rehearsed.node_group("gpu", "g5.12xlarge", labels=POOL, scalingConfig=scaling)
    rehearsed.namespace()
    rehearsed.config_map("env", {"main.py": PRINT_ENV})
    rehearsed.create(JOB, job("train", script_pod("env", nodeSelector=POOL)), "train")
    assert any(
        "cluster autoscaler" in message for severity, message in rehearsed.log if severity == "warning"
    )


def test_nodes_have_the_layers_of_a_network_that_ec2_reports(rehearsed: Rehearsed) -> None:
    for name, machine in (("gpu", "p5.48xlarge"), ("cpu", "m6i.xlarge")):
        rehearsed.node_group(name, machine, scalingConfig={"minSize": 0, "maxSize": 6, "desiredSize": 0})
    (record,) = rehearsed.state.find(type="aws:eks/cluster:Cluster")
    layers = {
        node.name: [node.labels.get(f"topology.k8s.aws/network-node-layer-{one}") for one in (1, 2, 3)]
        for node in nodes(KubeCluster(rehearsed.state, record))
    }
    near, far = layers["gpu-0"], layers["gpu-5"]
    assert all(near) and near == layers["gpu-1"]
    assert near[:2] == far[:2] and near[2] != far[2]
    assert layers["cpu-0"] == [None] * 3


def test_nodes_follow_the_launch_template(rehearsed: Rehearsed) -> None:
    interfaces = [{"interfaceType": "efa"}, {"interfaceType": "efa-only"}, {"interfaceType": "interface"}]
    template = {"instanceType": "p4d.24xlarge", "networkInterfaces": interfaces}
    rehearsed.aws("aws:ec2/launchTemplate:LaunchTemplate", "lt-1", template, {"name": "lt"})
    rehearsed.node_group(
        "efa", instanceTypes=None, launchTemplate={"id": "lt-1"}, amiType="BOTTLEROCKET_x86_64_NVIDIA"
    )
    plugin = {**PLUGIN, "chart": "aws-efa-k8s-device-plugin", "name": "efa"}
    rehearsed.create(RELEASE, plugin, "efa")
    (record,) = rehearsed.state.find(type="aws:eks/cluster:Cluster")
    node = next(node for node in nodes(KubeCluster(rehearsed.state, record)) if node.group == "efa")
    assert {name: int(count) for name, count in node.extended.items()} == {GPU: 8, "vpc.amazonaws.com/efa": 2}


def _queue(rehearsed: Rehearsed, quota: str, **flavor: object) -> None:
    release = {
        "chart": "oci://registry.k8s.io/kueue/charts/kueue", "name": "kueue", "namespace": "kueue-system",
        "createNamespace": True,
    }  # fmt: skip
    rehearsed.create(RELEASE, release, "kueue")
    kind = "kubernetes:kueue.x-k8s.io/v1beta2:"
    rehearsed.create(
        kind + "ResourceFlavor",
        {
            "metadata": {"name": "any"},
            "spec": {"nodeLabels": {"eks.amazonaws.com/nodegroup": "system"}, **flavor},
        },
        "f",
    )
    flavors = [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": quota}]}]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    spec = {"resourceGroups": groups, "namespaceSelector": {}}
    rehearsed.create(kind + "ClusterQueue", {"metadata": {"name": "all"}, "spec": spec}, "cq")
    local = {"metadata": {"name": "team", "namespace": "lab"}, "spec": {"clusterQueue": "all"}}
    rehearsed.create(kind + "LocalQueue", local, "lq")


def test_a_flavor_stays_while_a_queue_uses_it(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    _queue(rehearsed, "4")

    def delete(kind: str, name: str) -> None:
        call = rehearsed.call(f"kubernetes:kueue.x-k8s.io/v1beta2:{kind}", name)
        rehearsed.cloud.delete(call, name, {})

    with pytest.raises(RefusalError, match="resource-in-use stays while ClusterQueue all"):
        delete("ResourceFlavor", "any")
    delete("ClusterQueue", "all")
    delete("ResourceFlavor", "any")


@pytest.mark.parametrize(
    ("queue", "quota", "message"),
    [
        ("team", "8", ""),
        ("other", "8", "LocalQueue other doesn't exist"),
        ("team", "1", "insufficient quota for cpu in flavor any"),
    ],
)
def test_kueue_admits_or_holds(rehearsed: Rehearsed, queue: str, quota: str, message: str) -> None:
    rehearsed.namespace()
    _queue(rehearsed, quota)
    rehearsed.config_map("env", {"main.py": PRINT_ENV})
    inputs = job("train", script_pod("env", container={"resources": {"requests": {"cpu": "2"}}}))
    inputs["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    if not message:
        rehearsed.create(JOB, inputs, "train")
        return
    with pytest.raises(InitFailedError, match=message):
        rehearsed.create(JOB, inputs, "train", timeout_s=0.5)


def test_kueue_keeps_a_job_off_a_flavor_whose_taint_it_does_not_tolerate(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    _queue(rehearsed, "8", nodeTaints=[{"key": GPU, "value": "present", "effect": "NoSchedule"}])
    rehearsed.config_map("env", {"main.py": PRINT_ENV})

    def queued(name: str, **pod: object) -> dict[str, Any]:
        asks = {"resources": {"requests": {"cpu": "2"}}}
        inputs = job(name, script_pod("env", container=asks, **pod))
        inputs["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
        return inputs

    with pytest.raises(InitFailedError, match=r"untolerated taint .* in flavor any"):
        rehearsed.create(JOB, queued("plain"), "plain", timeout_s=0.5)
    tolerant = queued("tolerant", tolerations=[{"key": GPU, "operator": "Exists"}])
    rehearsed.create(JOB, tolerant, "tolerant")


def test_lustre_shows_the_objects_of_its_bucket(rehearsed: Rehearsed) -> None:
    rehearsed.aws("aws:s3/bucket:Bucket", "data", {}, {"bucket": "data"})
    names = {"dnsName": "fs-1.fsx.eu-central-1.amazonaws.com", "mountName": "abc"}
    rehearsed.aws("aws:fsx/lustreFileSystem:LustreFileSystem", "fs-1", {}, names)
    association = {"fileSystemId": "fs-1", "fileSystemPath": "/ckpt", "dataRepositoryPath": "s3://data/runs"}
    rehearsed.aws("aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation", "dra-1", association, {})
    attributes = {"dnsname": names["dnsName"], "mountname": "wrong"}
    csi = {"driver": "fsx.csi.aws.com", "volumeHandle": "fs-1", "volumeAttributes": attributes}
    size = {"storage": "1200Gi"}
    rehearsed.namespace()
    volume = {"accessModes": ["ReadWriteMany"], "capacity": size, "csi": csi, "storageClassName": ""}
    rehearsed.create(VOLUME, {"metadata": {"name": "v"}, "spec": volume}, "v")
    claim = {
        "accessModes": ["ReadWriteMany"], "resources": {"requests": size}, "volumeName": "v",
        "storageClassName": "",
    }  # fmt: skip
    rehearsed.create(CLAIM, {"metadata": {"name": "c", "namespace": "lab"}, "spec": claim}, "c")
    rehearsed.config_map("write", {"main.py": "import os; open(os.environ['OUT'], 'w').write('42')"})
    pod = script_pod("write", container={"env": [{"name": "OUT", "value": "/shared/ckpt/x"}]})
    pod["volumes"].append({"name": "shared", "persistentVolumeClaim": {"claimName": "c"}})
    pod["containers"][0]["volumeMounts"].append({"name": "shared", "mountPath": "/shared"})
    with pytest.raises(InitFailedError, match=r"volumeAttributes\.mountname"):
        rehearsed.create(JOB, job("write", pod), "write", timeout_s=0.5)
    attributes["mountname"] = "abc"
    for token, name, key in ((JOB, "write", "lab/write"), (CLAIM, "c", "lab/c"), (VOLUME, "v", "v")):
        rehearsed.cloud.delete(rehearsed.call(token, name), key, {})
    rehearsed.create(VOLUME, {"metadata": {"name": "v"}, "spec": volume}, "v")
    rehearsed.create(CLAIM, {"metadata": {"name": "c", "namespace": "lab"}, "spec": claim}, "c")
    rehearsed.create(JOB, job("write", pod), "write")
    assert (rehearsed.home / "s3" / "data" / "runs" / "x").read_text() == "42"


def test_what_a_pod_needs_and_does_not_find(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    with pytest.raises(InitFailedError, match='configmap "env" not found'):
        rehearsed.create(JOB, job("a", script_pod("env")), "a", timeout_s=0.4)
    rehearsed.config_map("env", {"main.py": PRINT_ENV})
    with pytest.raises(InitFailedError, match='serviceaccount "missing" not found'):
        rehearsed.create(JOB, job("b", script_pod("env", serviceAccountName="missing")), "b", timeout_s=0.4)


def trusted_role(rehearsed: Rehearsed, *secrets: str) -> str:
    arn = f"arn:aws:iam::{ACCOUNT}:role/mlflow"
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "pods.eks.amazonaws.com"},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
    }
    trust = json.dumps({"Statement": [statement]})
    rehearsed.aws("aws:iam/role:Role", "mlflow", {"assumeRolePolicy": trust}, {"arn": arn, "name": "mlflow"})
    grant = {"Effect": "Allow", "Action": "secretsmanager:*SecretValue", "Resource": list(secrets)}
    rehearsed.aws(
        "aws:iam/rolePolicy:RolePolicy",
        "p",
        {"role": "mlflow", "policy": json.dumps({"Statement": [grant]})},
        {},
    )
    rehearsed.aws(
        "aws:eks/addon:Addon", "agent", {"addonName": "eks-pod-identity-agent", "clusterName": "dev"}, {}
    )
    return arn


def test_only_associated_pods_get_an_identity(rehearsed: Rehearsed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-developer")
    arn = trusted_role(rehearsed, "*")
    association = {"clusterName": "dev", "namespace": "lab", "serviceAccount": "mlflow", "roleArn": arn}
    rehearsed.aws("aws:eks/podIdentityAssociation:PodIdentityAssociation", "a", association, {})
    rehearsed.namespace()
    rehearsed.create(ACCOUNT_KIND, {"metadata": {"name": "mlflow", "namespace": "lab"}}, "sa")
    rehearsed.config_map("env", {"main.py": PRINT_ENV})
    rehearsed.create(JOB, job("without", script_pod("env")), "without")
    rehearsed.create(JOB, job("with", script_pod("env", serviceAccountName="mlflow")), "with")
    names = {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"}
    assert not names & printed(rehearsed, "without").keys()
    found = printed(rehearsed, "with")
    assert names <= found.keys()
    assert found["AWS_REGION"] == "eu-central-1"
    assert "AWS_SECRET_ACCESS_KEY" not in found
    assert Path(found["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]).stat().st_mode & 0o077 == 0
