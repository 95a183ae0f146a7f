"""Kubeflow's kinds (pure): TrainJob (trainer.kubeflow.org/v1alpha1, v2.2) on the runtime torch-distributed.

The runtime sets every node's rank in `PET_*` variables, which torchrun reads itself. Two older kinds
are templates only, for clusters that still have their operators: PyTorchJob (kubeflow.org/v1,
training-operator v1) and MPIJob (kubeflow.org/v2beta1, mpi-operator 0.8), which needs ssh in the image.
"""

import dataclasses

from infra.launchers import kubernetes, pods
from infra.launchers.fabrics import PodNeeds, on_nodes
from infra.launchers.pods import Body
from infra.launchers.rendezvous import JOIN, joining_command, joining_environment
from infra.launchers.runplan import PER_NODE, RunPlan, RunPlanError

_GROUP = "trainer.kubeflow.org"
API_VERSION = f"{_GROUP}/v1alpha1"
RUNTIME = "torch-distributed"
_JOBS = "node"  # name of the runtime's replicated Job and of its container
# Trainer identifies the training Job by these, and its SDK the framework.
_TRAINS = {f"{_GROUP}/trainjob-ancestor-step": "trainer"}
_TORCH = {f"{_GROUP}/framework": "torch"}
# Commands that run once per node read the same variables everywhere.
_TRANSLATE = (
    'export NODE_RANK="$PET_NODE_RANK" MASTER_ADDR="$PET_MASTER_ADDR" MASTER_PORT="$PET_MASTER_PORT"; '
    'exec "$@"'
)
# Fields of a patch of the runtime's pod (PodSpecPatch of the definition); the runtime sets the others.
_PATCHABLE = ("serviceAccountName", "affinity", "tolerations", "securityContext", "volumes")
_PATCHABLE_OF_CONTAINER = ("name", "securityContext", "volumeMounts")
_PYTORCH_CONTAINER = "pytorch"  # the operator looks for this name


def train_job(plan: RunPlan) -> list[Body]:
    """Render a TrainJob; fields missing in its trainer become a patch of the runtime."""
    text = ["torchrun", f"--max-restarts={plan.max_restarts}", *pods.node_words(plan)]
    if plan.command_per == PER_NODE:
        text = ["bash", "-c", _TRANSLATE, "node", *pods.node_words(plan)]
    trainer = {
        "image": plan.image,
        "command": pods.profiled(plan, text),
        "numNodes": plan.nodes,
        "numProcPerNode": plan.ranks,
        "resourcesPerNode": pods.resources(plan),
        "env": pods.environment(plan) or None,
    }
    spec: Body = {
        "runtimeRef": {"apiGroup": _GROUP, "kind": "ClusterTrainingRuntime", "name": RUNTIME},
        "activeDeadlineSeconds": plan.deadline_s,
        "trainer": pods.given(trainer),
        "runtimePatches": [_patch(plan)],
    }
    return [pods.body(plan, API_VERSION, "TrainJob", spec)]


def runtime(plan: RunPlan, *, whole_node: bool = True, needs: PodNeeds | None = None) -> Body:
    """Render the ClusterTrainingRuntime `plan.name`, whose TrainJobs run like the JobSet of `plan`.

    A TrainJob sets its command, number of nodes and optionally another image. With `whole_node` each of its
    pods requests the amounts of `plan`; else the TrainJob sets them, as `train_job` does. `needs` are
    requirements of pods on its nodes; a profile among them is read by the TrainJob's command only.
    """
    # The controller of TrainJobs would make a JobSet again that was deleted.
    plan = dataclasses.replace(on_nodes(plan, needs), kept_s=None)
    (jobset,) = kubernetes.jobset(plan)
    (job,) = jobset["spec"]["replicatedJobs"]
    job["template"]["metadata"] = {"labels": _TRAINS}
    for key in ("completions", "parallelism", "activeDeadlineSeconds"):
        del job["template"]["spec"][key]
    pod = job["template"]["spec"]["template"]
    # Both depend on the name of a run, which a TrainJob has and its runtime does not.
    del pod["metadata"]["labels"], pod["spec"]["affinity"]["podAntiAffinity"]
    (container,) = pod["spec"]["containers"]
    for key in ("command", "env", *(() if whole_node else ("resources",))):
        del container[key]
    if needs is not None:
        # The TrainJob's own are added.
        own = plan.env.items()
        container["env"] = [{"name": name, "value": pods.literal(value)} for name, value in own]
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": plan.name, "labels": _TORCH},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": jobset["spec"]}},
    }


def pytorch_job(plan: RunPlan) -> list[Body]:
    """Render one master and its workers, one pod per node. The operator sets torchrun's `PET_*`."""
    text = ["torchrun", *pods.node_words(plan)]
    if plan.command_per == PER_NODE:
        # Here RANK is the index of the pod.
        text = ["bash", "-c", 'export NODE_RANK="$RANK"; exec "$@"', "node", *pods.node_words(plan)]
    env = [{"name": "PET_MAX_RESTARTS", "value": str(plan.max_restarts)}, *pods.environment(plan)]
    template = pods.template(plan, text, env, container=_PYTORCH_CONTAINER)
    counts = {"Master": 1, "Worker": plan.nodes - 1}
    spec: Body = {
        "nprocPerNode": str(plan.ranks),
        "runPolicy": _run_policy(plan, "None"),
        "pytorchReplicaSpecs": {role: _replicas(count, template) for role, count in counts.items() if count},
    }
    return [pods.body(plan, "kubeflow.org/v1", "PyTorchJob", spec)]


def mpi_job(plan: RunPlan) -> list[Body]:
    """Render an MPIJob: mpirun starts one process per node by ssh, which starts the node's ranks."""
    if plan.sidecars or plan.profile or plan.plugin:
        raise RunPlanError(["sidecars, profile, plugin: processes started by ssh have none; use a JobSet"])
    master = f"{plan.name}-worker-0.{plan.name}"
    join = f'export NODE_RANK="$OMPI_COMM_WORLD_RANK" MASTER_ADDR={master}; {JOIN}'
    exported = [word for name in joining_environment(plan) for word in ("-x", name)]
    text = [
        "mpirun", "--allow-run-as-root", "-np", str(plan.nodes), "--map-by", "ppr:1:node",
        "--bind-to", "none", *exported, "bash", "-c", join, "node", *map(pods.literal, joining_command(plan)),
    ]  # fmt: skip
    env = [{"name": name, "value": pods.literal(value)} for name, value in joining_environment(plan).items()]
    launcher = pods.template(plan, text, env)
    amounts = {"cpu": "1", "memory": "2Gi"}  # it only runs mpirun
    launcher["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    # The launcher may share a node with a worker.
    del launcher["spec"]["affinity"]
    worker = pods.template(plan, ["/usr/sbin/sshd", "-De"], [])
    spec: Body = {
        "slotsPerWorker": 1,
        "mpiImplementation": "OpenMPI",
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": _run_policy(plan, "Running"),
        "mpiReplicaSpecs": {"Launcher": _replicas(1, launcher), "Worker": _replicas(plan.nodes, worker)},
    }
    return [pods.body(plan, "kubeflow.org/v2beta1", "MPIJob", spec)]


def _run_policy(plan: RunPlan, clean: str) -> Body:
    return {"cleanPodPolicy": clean, "activeDeadlineSeconds": plan.deadline_s, "backoffLimit": 0}


def _replicas(count: int, template: Body) -> Body:
    return {"replicas": count, "restartPolicy": "Never", "template": template}


def _patch(plan: RunPlan) -> Body:
    """Return the pod fields missing in the trainer. Raises RunPlanError for unsupported ones."""
    problems = []
    if plan.root_folder:
        problems.append("root_folder: a TrainJob can add no init container; make the folder beforehand")
    if plan.device_claims:
        problems.append("device_claims: a TrainJob can add none; use a JobSet, or the pool's runtime")
    problems += [
        f"{key}: a TrainJob can add none; use a runtime that has them"
        for key in ("sidecars", "plugin")
        if getattr(plan, key)
    ]
    if plan.grace_s != RunPlan.grace_s:
        # Trainer 2.3 supports it; Kueue 0.19, built for the fields of 2.2, drops it on admission.
        problems.append(f"grace_s: a TrainJob cannot set it; its runtime has {RunPlan.grace_s}")
    if problems:
        raise RunPlanError(problems)
    # Its runtime has the policy of checkpoints.
    own = dataclasses.replace(plan, checkpoint_policy=False)
    whole = pods.template(own, [], [], container=_JOBS)
    (container,) = whole["spec"]["containers"]
    kept = {key: container[key] for key in _PATCHABLE_OF_CONTAINER if key in container}
    spec = {key: whole["spec"][key] for key in _PATCHABLE if key in whole["spec"]}
    pod = {"metadata": whole["metadata"], "spec": {**spec, "containers": [kept]}}
    job = {"name": _JOBS, "template": {"spec": {"template": pod}}}
    runtime = {"template": {"spec": {"replicatedJobs": [job]}}}
    return {"manager": "trainstack.dev/launcher", "trainingRuntimeSpec": runtime}
