import hashlib
import json
import zipfile
from base64 import b64decode
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import pulumi
import pytest

from components.kubernetes.offers import FabricOffer, NodeOffer
from components.kubernetes.validation.args import SmokeTestArgs
from components.kubernetes.validation.bundle import bundle
from components.kubernetes.validation.gate import SmokeTest
from components.kubernetes.validation.home import SmokeHome
from components.kubernetes.validation.schedule import SmokeSchedule
from smoke_training.fabric import Fabric
from smoke_training.launchers import gke
from smoke_training.launchers.validation import CONTROL_PORT_OFFSET
from tests.components.graph import Graph, deploy_graph

FABRIC: FabricOffer = {
    "kind": Fabric.EFA,
    "resource": "vpc.amazonaws.com/efa",
    "count": 4,
    "pod_resources": {"hugepages-2Mi": "5120Mi"},
}
CLAIMED: FabricOffer = {**FABRIC, "device_class": "efa.networking.k8s.aws"}
NODE: NodeOffer = {"cpu": 80, "memory_gib": 900, "gpus": 8, "fabric": FABRIC}
PLAN = {"stack": "dev-aws", "instance_type": "p4d.24xlarge", "hourly_cost_usd": None}


def args() -> SmokeTestArgs:
    return {
        "pool": "a100",
        "namespace": "trainstack-smoke",
        "queue": "smoke",
        "priority": "validation",
        "plan": PLAN,
        "image": "registry.example/pytorch@sha256:00",
        "watch_image": "registry.example/mlflow@sha256:11",
        "nodes": 2,
        "node": NODE,
        "pool_labels": {"trainstack.dev/pool": "a100"},
        "tracking_url": "http://mlflow.mlflow.svc.cluster.local:5000",
        "environment": {"REGION": "here"},
        "login_secret": "mlflow-login",
        "timeout_s": 900,
    }


def smoke(given: SmokeTestArgs) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        home = SmokeHome("dev-smoke", {"namespace": given["namespace"]})
        made = SmokeTest("dev-smoke", {**given, "namespace": home.namespace})
        return {"job": made.job_name, "result": made.result_path, "digest": made.digest}

    return deploy_graph(program)


@pytest.fixture(scope="module")
def made() -> Graph:
    return smoke(args())


@pytest.fixture(scope="module")
def job(made: Graph) -> Mapping[str, Any]:
    return made.find("Job", "-job")


@pytest.fixture(scope="module")
def pod(job: Mapping[str, Any]) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = job["spec"]["template"]["spec"]
    return spec


def container(graph: Graph) -> Mapping[str, Any]:
    (only,) = graph.find("Job", "-job")["spec"]["template"]["spec"]["containers"]
    found: Mapping[str, Any] = only
    return found


def environment(graph: Graph) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in container(graph)["env"]}


def test_the_job_is_indexed_tries_once_and_stays(job: Mapping[str, Any]) -> None:
    spec = job["spec"]
    assert spec["completionMode"] == "Indexed"
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (2, 2, 0)
    assert "ttlSecondsAfterFinished" not in spec
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert "podFailurePolicy" not in spec  # it would hold it against pods that the queue stopped


def test_the_queue_admits_it_and_the_provider_runs_a_failed_one_again(job: Mapping[str, Any]) -> None:
    metadata = job["metadata"]
    assert metadata["labels"] == {
        "trainstack.dev/run": metadata["name"],
        "kueue.x-k8s.io/queue-name": "smoke",
        "kueue.x-k8s.io/priority-class": "validation",
    }
    assert metadata["annotations"] == {
        "pulumi.com/replaceUnready": "true",
        "pulumi.com/waitFor": "jsonpath={.metadata.uid}",
    }


def test_the_engine_ignores_what_kueue_writes(made: Graph) -> None:
    request = made.requests["Job:dev-smoke-job"]
    assert made.find("Job", "-job")["spec"]["activeDeadlineSeconds"] == 1200 + 900
    assert list(request.ignoreChanges) == ["spec.suspend", "spec.template.spec.nodeSelector"]
    assert request.deleteBeforeReplace


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


def test_ranks_find_each_other_before_they_are_ready(made: Graph, pod: Mapping[str, Any]) -> None:
    service = made.find("Service")
    assert service["metadata"]["name"] == pod["subdomain"] == made.outputs["job"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    control = int(environment(made)["MASTER_PORT"]) + CONTROL_PORT_OFFSET
    assert [port["port"] for port in service["spec"]["ports"]] == [29500, control]
    assert service["spec"]["selector"] == made.find("Job", "-job")["spec"]["template"]["metadata"]["labels"]
    assert {
        "Service:dev-smoke-service",
        "ServiceAccount:dev-smoke-account",
        "ConfigMap:dev-smoke-code",
    } <= made.waits_for("Job:dev-smoke-job")


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


def test_the_same_input_is_the_same_job(made: Graph) -> None:
    assert smoke(args()).outputs["job"] == made.outputs["job"]
    assert smoke({**args(), "plan": dict(reversed(PLAN.items()))}).outputs["job"] == made.outputs["job"]


@pytest.mark.parametrize(
    "change",
    [
        {"plan": {"stack": "dev-aws", "instance_type": "p5.48xlarge", "hourly_cost_usd": None}},
        {"image": "registry.example/pytorch@sha256:11"},
        {"nodes": 4},
        {"node": {**NODE, "gpus": 4}},
        {"node": {**NODE, "fabric": {**FABRIC, "count": 1}}},
        {"pool_labels": {"trainstack.dev/pool": "h100"}},
        {"pvc_name": "checkpoints"},
        {"timeout_s": 901},
        {"node": {**NODE, "cpu": 79}},
    ],
)
def test_anything_that_is_validated_changes_the_name(made: Graph, change: Any) -> None:
    changed: Any = {**args(), **change}
    assert smoke(changed).outputs["job"] != made.outputs["job"]


def test_where_results_are_reported_does_not(made: Graph) -> None:
    elsewhere = {**args()["environment"], "REGION": "there"}
    moved = smoke({**args(), "tracking_url": "http://elsewhere:5000", "environment": elsewhere})
    assert moved.outputs["job"] == made.outputs["job"]


def test_validations_of_two_pools_share_their_home_and_no_name() -> None:
    def program(pools: Sequence[str]) -> Graph:
        def both() -> Mapping[str, pulumi.Input[Any]]:
            home = SmokeHome("dev-smoke", {"namespace": "trainstack-smoke"})
            made = {}
            for pool in pools:
                labels = {"trainstack.dev/pool": pool}
                run: Any = {**args(), "pool": pool, "namespace": home.namespace, "pool_labels": labels}
                run["node"] = {**NODE, "fabric": CLAIMED}
                made[pool] = SmokeTest(f"dev-smoke-{pool}", run).job_name
                SmokeSchedule(f"dev-schedule-{pool}", {"schedule": "0 5 * * 1", "run": run})
            return made

        return deploy_graph(both)

    graph = program(["a100", "h100"])
    names = [
        (asked.type, asked.properties["metadata"].get("namespace"), asked.properties["metadata"]["name"])
        for asked in graph.cloud.asked
        if asked.type.startswith("kubernetes:")
    ]
    assert len(names) == len(set(names)) > 20
    assert not any("h100" in name for name in graph.waits_for("Job:dev-smoke-a100-watch"))
    assert program(["a100"]).outputs["a100"] == graph.outputs["a100"] != graph.outputs["h100"]


def test_what_a_node_s_network_needs_is_in_the_run_and_in_its_identity() -> None:
    networks = [f"net-{index}" for index in range(8)]
    fabric: FabricOffer = {
        "kind": Fabric.TCPXO,
        "count": 8,
        "pod_resources": gke.network_requests(networks),
    }
    node: NodeOffer = {**NODE, "fabric": fabric, "pod": gke.tcpxo(networks)}
    made, plain = smoke({**args(), "node": node}), smoke(args())
    pod = made.find("batch/v1:Job", "smoke-job")["spec"]["template"]
    assert [each["name"] for each in pod["spec"]["initContainers"]] == ["tcpxo-daemon"]
    (run,) = pod["spec"]["containers"]
    variables = {row["name"]: row.get("value") for row in run["env"]}
    # NCCL says which network it chose, whatever Google's own profile would say.
    assert (variables["NCCL_DEBUG"], variables["NCCL_FASTRAK_CTRL_DEV"]) == ("INFO", "eth0")
    assert "/tmp" in [mount["mountPath"] for mount in run["volumeMounts"]]
    assert "networking.gke.io/interfaces" in pod["metadata"]["annotations"]
    assert made.outputs["digest"] != plain.outputs["digest"]


def test_what_the_queue_writes_where_it_asks_for_nodes_is_left_to_it() -> None:
    plain = smoke(args()).ignored["Job:dev-smoke-job"]
    asked = smoke({**args(), "provisioned": True}).ignored["Job:dev-smoke-job"]
    assert set(asked) - set(plain) == {"spec.template.spec.tolerations", "spec.template.metadata.annotations"}
