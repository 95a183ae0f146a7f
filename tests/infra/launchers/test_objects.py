"""Rendered objects against what others say: the SDK's types, the API server's rules, the projects' CRDs."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.launchers import kubeflow, kubernetes, runplan, shell
from infra.launchers.aws import sagemaker
from infra.launchers.gcp import gke
from infra.launchers.pods import EFA_HUGE_PAGES
from infra.launchers.runplan import Mount, RunPlan, RunPlanError
from rehearsal.core.schema import Schemas
from rehearsal.core.validate import validate
from rehearsal.kubernetes.rules import alone
from rehearsal.kubernetes.rules.objects.schema import misfits
from tests.infra.launchers import plans

Body = dict[str, Any]
CRDS = json.loads(Path(__file__).with_name("crds.json").read_text())
CUSTOM = [kubernetes.jobset, kubeflow.train_job, kubeflow.pytorch_job, kubeflow.mpi_job]
RUNTIMES = [
    lambda plan: [kubeflow.runtime(plan)], lambda plan: [kubeflow.runtime(plan, whole_node=False)],
]  # fmt: skip
PLANS = [
    plans.training(),
    plans.cpu(),
    replace(plans.cpu(), nodes=1, user_id=1000),
    replace(plans.training(), topology_level="topology.k8s.aws/network-node-layer-3", nodes=64),
]
ON_GKE = [plans.tcpx(), plans.tcpxo(), plans.gib(), plans.gib_networks()]


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Schemas]:
    found = Schemas("kubernetes", tmp_path_factory.mktemp("sdk"))
    yield found
    found.close()


def faults(sdk: Schemas, token: str, body: Mapping[str, Any]) -> list[str]:
    schema = sdk.resource(token)
    assert schema is not None
    inputs = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
    found = [f"{fault.property}: {fault.reason}" for fault in validate(schema, inputs)]
    return found + [f"{broken.path}: {broken.message}" for _, broken in alone(token, dict(inputs))]


def pods(body: Any) -> Iterator[Body]:
    """Every pod template inside an object."""
    if isinstance(body, dict):
        spec = body.get("spec")
        if isinstance(spec, dict) and "containers" in spec and "restartPolicy" in spec:
            yield body
        for value in body.values():
            yield from pods(value)
    elif isinstance(body, list):
        for value in body:
            yield from pods(value)


def environment(pod: Body) -> dict[str, Any]:
    return {row["name"]: row.get("value") for row in pod["spec"]["containers"][0]["env"]}


@pytest.mark.parametrize("plan", [*PLANS, *ON_GKE])
def test_jobs_and_services_are_what_an_api_server_takes(plan: RunPlan, sdk: Schemas) -> None:
    service, job = kubernetes.job(plan)
    assert faults(sdk, "kubernetes:core/v1:Service", service) == []
    assert faults(sdk, "kubernetes:batch/v1:Job", job) == []


@pytest.mark.parametrize("plan", PLANS)
def test_cron_jobs_are_what_an_api_server_takes(plan: RunPlan, sdk: Schemas) -> None:
    _, cron = kubernetes.cron_job(plan, "0 5 * * 1")
    assert faults(sdk, "kubernetes:batch/v1:CronJob", cron) == []


@pytest.mark.parametrize("make", [*CUSTOM, *RUNTIMES])
@pytest.mark.parametrize("plan", PLANS)
def test_custom_objects_fit_the_definitions_of_their_projects(
    make: Callable[[RunPlan], list[Body]], plan: RunPlan, sdk: Schemas
) -> None:
    (body,) = make(plan)
    schema = CRDS[f"{body['apiVersion']} {body['kind']}"]["schema"]
    assert [f"{broken.path}: {broken.message}" for broken in misfits(schema, body)] == []
    for pod in pods(body):
        holder = {"metadata": {"name": "held"}, "spec": {"template": pod}}
        assert faults(sdk, "kubernetes:batch/v1:Job", holder) == []


def test_the_definitions_do_refuse_what_is_wrong() -> None:
    (body,) = kubernetes.jobset(plans.training())
    body["spec"]["failurePolicy"]["rules"][0]["action"] = "GiveUp"
    body["spec"]["replicatedJob"] = []
    schema = CRDS["jobset.x-k8s.io/v1alpha2 JobSet"]["schema"]
    assert {broken.path for broken in misfits(schema, body)} == {
        "spec.failurePolicy.rules[0].action",
        "spec.replicatedJob",
    }


@pytest.mark.parametrize("make", [lambda plan: kubernetes.job(plan)[1:], *CUSTOM])
def test_the_queue_sees_every_kind(make: Callable[[RunPlan], list[Body]]) -> None:
    (body,) = make(plans.training())
    labels = body["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "default"
    assert labels["kueue.x-k8s.io/priority-class"] == "production"
    assert labels["team"] == "research" and body["metadata"]["namespace"] == "team-research"


@pytest.mark.parametrize("make", [lambda plan: kubernetes.job(plan)[1:], *CUSTOM])
def test_the_autoscaler_moves_no_pod_of_a_run(make: Callable[[RunPlan], list[Body]]) -> None:
    (body,) = make(plans.training())
    held = json.dumps(body).count('"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"')
    assert held == max(1, len(list(pods(body)))), "a TrainJob says it in a patch of its pods"


def test_the_queue_sees_the_jobs_of_a_cron_job_and_not_the_cron_job() -> None:
    _, cron = kubernetes.cron_job(plans.training(), "@daily")
    assert "kueue.x-k8s.io/queue-name" not in cron["metadata"]["labels"]
    assert cron["spec"]["jobTemplate"]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    assert cron["spec"]["concurrencyPolicy"] == "Forbid"
    (pod,) = pods(cron)
    names = [row["name"] for row in pod["spec"]["containers"][0]["env"]]
    assert names.index("JOB_NAME") < names.index("MASTER_ADDR"), "a reference works only backwards"
    assert environment(pod)["MASTER_ADDR"] == "$(JOB_NAME)-0.llama-7b.team-research.svc"


def test_every_node_of_a_job_finds_node_0() -> None:
    service, job = kubernetes.job(plans.training())
    (pod,) = pods(job)
    assert service["metadata"]["name"] == pod["spec"]["subdomain"] == "llama-7b"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert environment(pod)["MASTER_ADDR"] == "llama-7b-0.llama-7b.team-research.svc"
    assert pod["spec"]["containers"][0]["command"] == [
        "torchrun", "--nnodes=2", "--node-rank=$(NODE_RANK)", "--nproc-per-node=8",
        "--master-addr=$(MASTER_ADDR)", "--master-port=29500", "--max-restarts=3",
        "train.py", "--config", "configs/7b.toml", "--note", "it's a $$(HOME) test",
    ]  # fmt: skip


def test_a_jobset_names_its_own_pods() -> None:
    (body,) = kubernetes.jobset(plans.training())
    (pod,) = pods(body)
    assert "subdomain" not in pod["spec"]
    assert environment(pod)["MASTER_ADDR"] == "llama-7b-node-0-0.llama-7b"
    assert body["spec"]["failurePolicy"]["maxRestarts"] == 3


def test_a_train_job_leaves_the_rendezvous_to_its_runtime() -> None:
    (body,) = kubeflow.train_job(plans.training())
    trainer = body["spec"]["trainer"]
    assert (trainer["numNodes"], trainer["numProcPerNode"]) == (2, 8)
    assert trainer["command"][:3] == ["torchrun", "--max-restarts=3", "train.py"]
    assert not [row for row in trainer["env"] if row["name"].startswith("PET_")]
    (job,) = body["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    assert [volume["name"] for volume in pod["volumes"]] == ["checkpoints", "shared-memory"]
    assert pod["containers"][0]["volumeMounts"][0]["mountPath"] == "/checkpoints"


def test_what_a_train_job_cannot_do_is_said() -> None:
    claims = {"efa": "smoke-efa"}
    wanted = replace(plans.training(), root_folder="/checkpoints/x", device_claims=claims, grace_s=600)
    with pytest.raises(RunPlanError) as caught:
        kubeflow.train_job(wanted)
    named = [line.partition(":")[0] for line in caught.value.problems]
    assert named == ["root_folder", "device_claims", "grace_s"]


def test_a_runtime_takes_whole_nodes_and_leaves_the_run_to_its_train_jobs() -> None:
    body = kubeflow.runtime(plans.training())
    (job,) = body["spec"]["template"]["spec"]["replicatedJobs"]
    # Trainer addresses node 0, and every node's command, by these names.
    assert job["name"] == "node" and job["template"]["spec"]["backoffLimit"] == 0
    (pod,) = pods(body)
    (container,) = pod["spec"]["containers"]
    assert container["name"] == "node" and not {"command", "env"} & container.keys()
    assert container["resources"]["limits"]["vpc.amazonaws.com/efa"] == "4"
    assert [row["key"] for row in pod["spec"]["tolerations"]] == ["nvidia.com/gpu"]
    assert "/dev/shm" in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert "llama-7b" not in json.dumps(body["spec"]).replace('"subPath": "llama-7b"', "")
    (bare,) = pods(kubeflow.runtime(plans.training(), whole_node=False))
    assert "resources" not in bare["spec"]["containers"][0]


def test_legacy_kinds_count_their_pods() -> None:
    (torch_job,) = kubeflow.pytorch_job(replace(plans.training(), nodes=3))
    specs = torch_job["spec"]["pytorchReplicaSpecs"]
    assert {role: spec["replicas"] for role, spec in specs.items()} == {"Master": 1, "Worker": 2}
    assert list(
        kubeflow.pytorch_job(replace(plans.training(), nodes=1))[0]["spec"]["pytorchReplicaSpecs"]
    ) == ["Master"]
    (mpi,) = kubeflow.mpi_job(plans.training())
    launcher = mpi["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert "nvidia.com/gpu" not in launcher["resources"]["limits"], "mpirun itself needs no GPU"
    assert mpi["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
    exported = [
        after
        for before, after in zip(launcher["command"], launcher["command"][1:], strict=False)
        if before == "-x"
    ]
    assert {"NCCL_DEBUG", "PET_NNODES", "MASTER_PORT"} <= set(exported)


def test_devices_are_asked_for_once() -> None:
    (pod,) = pods(kubernetes.job(plans.training())[1])
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    assert limits["vpc.amazonaws.com/efa"] == "4" and limits["hugepages-2Mi"] == "5120Mi"
    by_claim = replace(plans.training(), devices=EFA_HUGE_PAGES, device_claims={"efa": "smoke-efa"})
    (pod,) = pods(kubernetes.job(by_claim)[1])
    container = pod["spec"]["containers"][0]
    assert "vpc.amazonaws.com/efa" not in container["resources"]["limits"]
    assert container["resources"]["claims"] == [{"name": "efa"}]
    assert pod["spec"]["resourceClaims"] == [{"name": "efa", "resourceClaimTemplateName": "smoke-efa"}]


LOGIN = Mount(name="login", path="/root/.mlflow", secret="mlflow-login", read_only=True)


@pytest.mark.parametrize("make", [kubernetes.job, kubernetes.jobset, kubeflow.train_job])
def test_a_secret_is_mounted_and_in_no_variable(make: Callable[[RunPlan], list[Body]]) -> None:
    rendered = json.dumps(make(replace(plans.training(), mounts=(LOGIN,))))
    assert json.dumps({"name": "login", "secret": {"secretName": "mlflow-login"}}) in rendered
    assert json.dumps({"name": "login", "mountPath": "/root/.mlflow", "readOnly": True}) in rendered
    assert "secretKeyRef" not in rendered


@pytest.mark.parametrize("make", [shell.sbatch, shell.torchrun, sagemaker.training_job])
def test_where_there_are_no_secrets_none_is_mounted(make: Callable[[RunPlan], object]) -> None:
    with pytest.raises(RunPlanError, match="Secrets"):
        make(replace(plans.managed(), mounts=(LOGIN,)))


def only_pod(plan: RunPlan) -> Body:
    _, job = kubernetes.job(plan)
    (pod,) = pods(job)
    return pod


@pytest.mark.parametrize("plan", [plans.tcpx(), plans.tcpxo()])
def test_a_daemon_of_the_network_ends_with_the_run(plan: RunPlan) -> None:
    _, daemon = only_pod(plan)["spec"]["initContainers"]
    # An init container that goes on: kubelet ends it after the run, so that the Job completes.
    assert daemon["restartPolicy"] == "Always"
    assert "NET_ADMIN" in daemon["securityContext"]["capabilities"]["add"]
    assert daemon["securityContext"]["runAsUser"] == 0 and "privileged" not in daemon["securityContext"]
    injected = only_pod(plan)["metadata"]["annotations"][f"devices.gke.io/container.{daemon['name']}"]
    assert "/dev/nvidia7" in injected and "/dev/nvidiactl" in injected


def test_the_run_of_tcpxo_sees_the_windows_of_its_nics_and_waits_for_the_daemon() -> None:
    spec = only_pod(plans.tcpxo())["spec"]
    (run,), (_, daemon) = spec["containers"], spec["initContainers"]
    assert {"name": "node-dev-aperture-devices", "mountPath": "/dev/aperture_devices"} in run["volumeMounts"]
    assert daemon["startupProbe"]["exec"]["command"] == ["cat", "/run/health-check"]
    variables = environment(only_pod(plans.tcpxo()))
    assert variables["NCCL_FASTRAK_IFNAME"] == "eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8"
    assert variables["NCCL_DEBUG"] == "INFO"
    names = [volume["name"] for volume in spec["volumes"]]
    assert len(set(names)) == len(names)


def test_run_and_daemon_of_tcpx_share_their_sockets_and_no_folder_of_the_node() -> None:
    spec = only_pod(plans.tcpx())["spec"]
    (run,), (_, daemon) = spec["containers"], spec["initContainers"]
    shared = {"name": "fabric", "mountPath": "/run/tcpx"}
    assert shared in run["volumeMounts"] and shared in daemon["volumeMounts"]
    assert {"name": "fabric", "emptyDir": {}} in spec["volumes"]
    on_node = {volume["name"] for volume in spec["volumes"] if "hostPath" in volume}
    assert not on_node & {mount["name"] for mount in run["volumeMounts"]}


@pytest.mark.parametrize("plan", [plans.gib(), plans.gib_networks()])
def test_a_run_over_gib_needs_nothing_of_its_node(plan: RunPlan) -> None:
    spec = only_pod(plan)["spec"]
    assert [each["name"] for each in spec["initContainers"]] == ["nccl-plugin"]
    assert not [volume for volume in spec["volumes"] if "hostPath" in volume]
    command = spec["containers"][0]["command"]
    # The plugin's own variables, then what the plan says of NCCL, then the run.
    assert command[:4] == [
        *("bash", "-c", 'source "$0" && exec "$@"'),
        "/usr/local/nvidia/gib/scripts/set_nccl_env.sh",
    ]
    assert command[4] == "env" and "NCCL_DEBUG=INFO" in command and "torchrun" in command


def test_adapters_are_claimed_or_their_networks_are_named() -> None:
    claimed, named = only_pod(plans.gib()), only_pod(plans.gib_networks())
    assert claimed["spec"]["resourceClaims"] == [{"name": "rdma", "resourceClaimTemplateName": "smoke-ultra"}]
    assert not [key for key in claimed["metadata"]["annotations"] if "networking.gke.io" in key]
    interfaces = json.loads(named["metadata"]["annotations"]["networking.gke.io/interfaces"])
    assert interfaces[1] == {"interfaceName": "eth2", "network": "rdma-0"}
    limits = named["spec"]["containers"][0]["resources"]["limits"]
    assert limits["networking.gke.io.networks/rdma-7"] == "1"


def test_a_runtime_brings_the_variables_of_its_nodes() -> None:
    networks = [f"mega-{index}" for index in range(8)]
    (pod,) = pods(kubeflow.runtime(plans.training(), needs=gke.tcpxo(networks)))
    assert environment(pod)["NCCL_FASTRAK_CTRL_DEV"] == "eth0"
    assert [each["name"] for each in pod["spec"]["initContainers"]] == ["nccl-plugin", "tcpxo-daemon"]


@pytest.mark.parametrize("render", [kubeflow.mpi_job, shell.sbatch, shell.torchrun])
def test_places_without_pods_refuse_what_only_pods_have(render: Callable[[RunPlan], Any]) -> None:
    for plan in (plans.tcpxo(), plans.gib()):
        with pytest.raises(RunPlanError, match="sidecars, profile"):
            render(plan)


def test_a_folder_of_the_node_is_one_content_of_a_mount() -> None:
    both = Mount(name="x", path="/x", host="/sys", memory_gib=1)
    with pytest.raises(RunPlanError, match="memory_gib and host"):
        runplan.check(replace(plans.training(), mounts=(both,)))


@pytest.mark.parametrize("plan", ON_GKE)
def test_a_run_plan_with_all_that_a_fabric_needs_is_read_back(plan: RunPlan) -> None:
    assert runplan.parse(runplan.render(plan)) == plan
