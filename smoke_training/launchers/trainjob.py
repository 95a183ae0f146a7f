"""Kubeflow TrainJob (trainer.kubeflow.org/v1alpha1, v2.3) on the runtime torch-distributed (pure).

The runtime tells every node its place in `PET_*` variables, which torchrun reads by itself.
"""

from smoke_training.launchers import pods
from smoke_training.launchers.pods import Body
from smoke_training.launchers.runplan import PER_NODE, RunPlan, RunPlanError

RUNTIME = "torch-distributed"
MANAGER = "trainstack.dev/launcher"
_JOBS = "node"  # name of the runtime's replicated Job and of its container
# Commands that run once per node read the same words everywhere.
_TRANSLATE = (
    'export NODE_RANK="$PET_NODE_RANK" MASTER_ADDR="$PET_MASTER_ADDR" MASTER_PORT="$PET_MASTER_PORT"; '
    'exec "$@"'
)


def train_job(plan: RunPlan) -> list[Body]:
    """A TrainJob; what its trainer has no field for goes into a patch of the runtime."""
    words = ["torchrun", f"--max-restarts={plan.max_restarts}", *pods.node_words(plan)]
    if plan.command_per == PER_NODE:
        words = ["bash", "-c", _TRANSLATE, "node", *pods.node_words(plan)]
    trainer: Body = {
        "image": plan.image,
        "command": words,
        "numNodes": plan.nodes,
        "numProcPerNode": plan.ranks,
        "resourcesPerNode": pods.resources(plan),
    }
    if env := pods.environment(plan):
        trainer["env"] = env
    spec: Body = {
        "runtimeRef": {
            "apiGroup": "trainer.kubeflow.org",
            "kind": "ClusterTrainingRuntime",
            "name": RUNTIME,
        },
        "activeDeadlineSeconds": plan.deadline_s,
        "trainer": trainer,
        "runtimePatches": [_patch(plan)],
    }
    return [pods.body(plan, "trainer.kubeflow.org/v1alpha1", "TrainJob", spec)]


# What a patch of the runtime's pod may say (PodSpecPatch of the definition); all else is the runtime's own.
_PATCHABLE = (
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "affinity",
    "tolerations",
    "securityContext",
    "volumes",
)
_PATCHABLE_OF_CONTAINER = ("name", "securityContext", "volumeMounts")


def _patch(plan: RunPlan) -> Body:
    """What of the pod the trainer's own fields cannot say. Raises RunPlanError for what nothing here can."""
    problems = []
    if plan.root_folder:
        problems.append("root_folder: a TrainJob can add no init container; make the folder beforehand")
    if plan.device_claims:
        problems.append("device_claims: a TrainJob can add no resource claim; use the device plugin")
    if problems:
        raise RunPlanError(problems)
    whole = pods.template(plan, [], [], subdomain=None, container=_JOBS)
    (container,) = whole["spec"]["containers"]
    kept = {key: container[key] for key in _PATCHABLE_OF_CONTAINER if key in container}
    spec = {key: whole["spec"][key] for key in _PATCHABLE if key in whole["spec"]}
    pod = {"metadata": whole["metadata"], "spec": {**spec, "containers": [kept]}}
    job = {"name": _JOBS, "template": {"spec": {"template": pod}}}
    return {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}
