"""Older Kubeflow kinds, for clusters that still have their operators (pure; templates only, not the gate).

PyTorchJob (kubeflow.org/v1, training-operator v1) and MPIJob (kubeflow.org/v2beta1, mpi-operator 0.8). New
runs use a JobSet or a TrainJob. An MPIJob needs ssh in the image, which the others do not.
"""

from smoke_training.launchers import pods
from smoke_training.launchers.place import JOIN, joining_command, joining_environment
from smoke_training.launchers.pods import Body
from smoke_training.launchers.runplan import PER_NODE, RunPlan

_PYTORCH_CONTAINER = "pytorch"  # the operator looks for this name
_LAUNCHER, _WORKER = "Launcher", "Worker"
# The launcher only calls mpirun.
_LAUNCHER_RESOURCES = {"cpu": "1", "memory": "2Gi"}


def pytorch_job(plan: RunPlan) -> list[Body]:
    """One master and its workers, a pod a node. The operator sets `PET_*`, which torchrun reads."""
    words = ["torchrun", *pods.node_words(plan)]
    if plan.command_per == PER_NODE:
        # Here RANK is the index of the pod.
        words = ["bash", "-c", 'export NODE_RANK="$RANK"; exec "$@"', "node", *pods.node_words(plan)]
    env = [
        {"name": "PET_MAX_RESTARTS", "value": str(plan.max_restarts)},
        *pods.environment(plan),
    ]
    template = pods.template(plan, words, env, subdomain=None, container=_PYTORCH_CONTAINER)
    counts = {"Master": 1, "Worker": plan.nodes - 1}
    spec: Body = {
        "nprocPerNode": str(plan.ranks),
        "runPolicy": {"cleanPodPolicy": "None", "activeDeadlineSeconds": plan.deadline_s, "backoffLimit": 0},
        "pytorchReplicaSpecs": {
            role: {"replicas": count, "restartPolicy": "Never", "template": template}
            for role, count in counts.items()
            if count
        },
    }
    return [pods.body(plan, "kubeflow.org/v1", "PyTorchJob", spec)]


def mpi_job(plan: RunPlan) -> list[Body]:
    """Mpirun starts one process a node, by ssh, and that one starts the node's ranks."""
    master = f"{plan.name}-worker-0.{plan.name}"
    join = f'export NODE_RANK="$OMPI_COMM_WORLD_RANK" MASTER_ADDR={master}; {JOIN}'
    exported = [word for name in joining_environment(plan) for word in ("-x", name)]
    words = [
        "mpirun", "--allow-run-as-root", "-np", str(plan.nodes), "--map-by", "ppr:1:node",
        "--bind-to", "none", *exported, "bash", "-c", join, "node", *map(pods.literal, joining_command(plan)),
    ]  # fmt: skip
    env = [{"name": name, "value": pods.literal(value)} for name, value in joining_environment(plan).items()]
    launcher = pods.template(plan, words, env, subdomain=None)
    launcher["spec"]["containers"][0]["resources"] = {
        "requests": _LAUNCHER_RESOURCES,
        "limits": _LAUNCHER_RESOURCES,
    }
    # The launcher may share a node with a worker.
    del launcher["spec"]["affinity"]
    worker = pods.template(plan, ["/usr/sbin/sshd", "-De"], [], subdomain=None)
    spec: Body = {
        "slotsPerWorker": 1,
        "mpiImplementation": "OpenMPI",
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": {
            "cleanPodPolicy": "Running",
            "activeDeadlineSeconds": plan.deadline_s,
            "backoffLimit": 0,
        },
        "mpiReplicaSpecs": {
            _LAUNCHER: {"replicas": 1, "restartPolicy": "Never", "template": launcher},
            _WORKER: {"replicas": plan.nodes, "restartPolicy": "Never", "template": worker},
        },
    }
    return [pods.body(plan, "kubeflow.org/v2beta1", "MPIJob", spec)]
