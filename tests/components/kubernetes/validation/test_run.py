"""The pods of a validation: what they run, ask for, mount and may do."""

import hashlib
import json
import zipfile
from base64 import b64decode
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from components.kubernetes.offers import FabricOffer, NodeOffer
from components.kubernetes.validation.args import SmokeTestArgs
from infra.launchers.bundle import bundle
from infra.launchers.gcp import gke
from smoke_training.fabric import Fabric
from tests.components.graph import Graph
from tests.components.kubernetes.validation.validations import (
    CLAIMED,
    NODE,
    args,
    container,
    environment,
    smoke,
)


def test_fields_that_are_ignored_do_not_carry_what_must_follow_the_pool(pod: Mapping[str, Any]) -> None:
    assert "nodeSelector" not in pod
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "trainstack.dev/pool", "operator": "In", "values": ["a100"]}]}
    ]


def test_one_pod_takes_one_whole_node(made: Graph, pod: Mapping[str, Any]) -> None:
    resources = container(made)["resources"]
    assert resources["requests"] == resources["limits"]
    assert resources["limits"] == {
        "cpu": "80",
        "memory": "900Gi",
        "nvidia.com/gpu": "8",
        "vpc.amazonaws.com/efa": "4",
        "hugepages-2Mi": "5120Mi",
    }
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert apart["labelSelector"]["matchLabels"] == {"trainstack.dev/run": made.outputs["job"]}


def test_pods_run_unprivileged_and_without_a_token(made: Graph, pod: Mapping[str, Any]) -> None:
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(made)["securityContext"] == {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert made.find("ServiceAccount", "smoke-account")["automountServiceAccountToken"] is False
    assert (
        made.find("ServiceAccount", "smoke-account")["metadata"]["name"]
        == pod["serviceAccountName"]
        == "smoke"
    )


def test_the_login_is_a_file_below_its_home_and_in_no_variable(made: Graph, pod: Mapping[str, Any]) -> None:
    (volume,) = [volume for volume in pod["volumes"] if "secret" in volume]
    assert volume["secret"] == {"secretName": "mlflow-login"}
    (mount,) = [one for one in container(made)["volumeMounts"] if one["name"] == volume["name"]]
    assert mount["mountPath"] == f"{environment(made)['HOME']}/.mlflow" and mount["readOnly"]
    assert not any("secretKeyRef" in row.get("valueFrom", {}) for row in container(made)["env"])


def test_the_container_follows_the_launchers_contract(made: Graph) -> None:
    name = made.outputs["job"]
    program, *arguments = container(made)["command"]
    assert (program, arguments[0]) == ("python", "/opt/trainstack/smoke_training.zip")
    assert arguments[1:] == ["node", "--plan", "/opt/trainstack/plan.json"]
    assert container(made)["terminationMessagePolicy"] == "FallbackToLogsOnError"
    env = environment(made)
    assert env["MASTER_ADDR"] == f"{name}-0.{name}.trainstack-smoke.svc"
    assert env["MASTER_PORT"] == "29500"
    assert env["WORK_DIR"] == f"/checkpoints/smoke/{name}"
    assert env["TERMINATION_MESSAGE_PATH"] == "/dev/termination-log"
    assert env["MLFLOW_TRACKING_URI"] == "http://mlflow.mlflow.svc.cluster.local:5000"
    assert env["REGION"] == "here"
    assert env["MLFLOW_EXPERIMENT_NAME"] == "smoke-validation"
    assert env["CODE_SHA256"] == bundle().sha256
    (rank,) = [entry for entry in container(made)["env"] if entry["name"] == "NODE_RANK"]
    assert rank["valueFrom"]["fieldRef"]["fieldPath"] == (
        "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    )
    assert made.outputs["result"] == f"/checkpoints/smoke/{name}/result.json"


def test_code_and_plan_are_what_the_name_stands_for(made: Graph, pod: Mapping[str, Any]) -> None:
    config = made.find("ConfigMap", "-code")
    assert config["immutable"] is True
    assert config["metadata"]["name"] == made.outputs["job"] == f"smoke-{made.outputs['digest']}"
    code = b64decode(config["binaryData"]["smoke_training.zip"])
    assert "__main__.py" in zipfile.ZipFile(BytesIO(code)).namelist()
    plan = json.loads(config["data"]["plan.json"])
    assert plan == {
        "schema": "trainstack.smoke-plan/1",
        "stack": "dev-aws",
        "instance_type": "p4d.24xlarge",
        "hourly_cost_usd": None,
        "nodes": 2,
        "gpus_per_node": 8,
        "timeout_s": 900,
        "image": "registry.example/pytorch@sha256:00",
        "code_sha256": hashlib.sha256(code).hexdigest(),
    }
    assert plan["code_sha256"] == bundle().sha256
    (volume,) = [volume for volume in pod["volumes"] if volume["name"] == "code"]
    assert volume["configMap"]["name"] == made.outputs["job"]


def test_shared_memory_is_large_and_scratch_is_writable(made: Graph, pod: Mapping[str, Any]) -> None:
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["shared-memory"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "450Gi"}
    assert volumes["checkpoints"] == {"name": "checkpoints", "emptyDir": {}}
    mounts = {mount["mountPath"]: mount["name"] for mount in container(made)["volumeMounts"]}
    assert mounts == {
        "/opt/trainstack": "code",
        "/checkpoints": "checkpoints",
        "/dev/shm": "shared-memory",
        "/tmp": "scratch",
        "/tmp/.mlflow": "login",
    }
    assert "initContainers" not in pod


def test_on_a_shared_volume_root_makes_the_folder_and_nothing_else() -> None:
    graph = smoke({**args(), "pvc_name": "checkpoints"})
    pod = graph.find("Job", "-job")["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["checkpoints"]["persistentVolumeClaim"] == {"claimName": "checkpoints"}
    (init,) = pod["initContainers"]
    assert init["command"] == ["install", "-d", "-m", "1777", "/checkpoints/smoke"]
    assert init["securityContext"]["runAsUser"] == 0
    assert init["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_devices_by_claim_are_counted_and_not_asked_for_twice() -> None:
    graph = smoke({**args(), "node": {**NODE, "fabric": CLAIMED}})
    (request,) = graph.find("ResourceClaimTemplate")["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"] == {
        "deviceClassName": "efa.networking.k8s.aws",
        "allocationMode": "ExactCount",
        "count": 4,
    }
    pod = graph.find("Job", "-job")["spec"]["template"]["spec"]
    assert pod["resourceClaims"] == [{"name": "efa", "resourceClaimTemplateName": "smoke-a100"}]
    resources = container(graph)["resources"]
    assert "vpc.amazonaws.com/efa" not in resources["limits"]
    assert resources["claims"] == [{"name": "efa"}]


def test_without_accelerators_none_are_asked_for() -> None:
    graph = smoke({**args(), "node": {"cpu": 80, "memory_gib": 900, "gpus": 0}})
    assert container(graph)["resources"]["limits"] == {"cpu": "80", "memory": "900Gi"}
    assert "NCCL_DEBUG" not in environment(graph)


def test_a_pool_with_a_topology_keeps_the_pods_close() -> None:
    def notes(given: SmokeTestArgs) -> dict[str, str]:
        return dict(smoke(given).find("Job", "-job")["spec"]["template"]["metadata"]["annotations"])

    level, plain = "topology.k8s.aws/network-node-layer-3", notes(args())
    asked = {"kueue.x-k8s.io/podset-preferred-topology": level}
    assert notes({**args(), "topology_level": level}) == {**plain, **asked}
    assert not asked.keys() & plain.keys()


def test_what_a_node_s_network_needs_is_in_the_run_and_in_its_identity() -> None:
    networks = [f"net-{index}" for index in range(8)]
    fabric: FabricOffer = {"kind": Fabric.TCPXO, "count": 8, "pod_resources": gke.network_requests(networks)}
    node: NodeOffer = {**NODE, "fabric": fabric, "pod": gke.tcpxo(networks)}
    made, plain = smoke({**args(), "node": node}), smoke(args())
    pod = made.find("batch/v1:Job", "smoke-job")["spec"]["template"]
    assert [each["name"] for each in pod["spec"]["initContainers"]] == ["nccl-plugin", "tcpxo-daemon"]
    (run,) = pod["spec"]["containers"]
    variables = {row["name"]: row.get("value") for row in run["env"]}
    # NCCL says which network it chose, whatever Google's own profile would say.
    assert (variables["NCCL_DEBUG"], variables["NCCL_FASTRAK_CTRL_DEV"]) == ("INFO", "eth0")
    assert "/tmp" in [mount["mountPath"] for mount in run["volumeMounts"]]
    assert "networking.gke.io/interfaces" in pod["metadata"]["annotations"]
    assert made.outputs["digest"] != plain.outputs["digest"]
