"""Pod templates of all kinds that have some, and resource requests of their containers."""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra.quantity import amount
from policies.resource import Resource

# Paths of the templates in the properties of each kind; `*` is every item of a list or of a map.
_OWN, _JOB = "", "spec.jobTemplate.spec.template"
_JOBSET = "spec.replicatedJobs.*.template.spec.template"
_RAY = ("headGroupSpec.template", "workerGroupSpecs.*.template")
_PLACES: Mapping[str, tuple[str, ...]] = {
    "kubernetes:core/v1:Pod": (_OWN,),
    "kubernetes:core/v1:PodTemplate": ("template",),
    "kubernetes:core/v1:ReplicationController": ("spec.template",),
    "kubernetes:apps/v1:Deployment": ("spec.template",),
    "kubernetes:apps/v1:StatefulSet": ("spec.template",),
    "kubernetes:apps/v1:DaemonSet": ("spec.template",),
    "kubernetes:apps/v1:ReplicaSet": ("spec.template",),
    "kubernetes:batch/v1:Job": ("spec.template",),
    "kubernetes:batch/v1:CronJob": (_JOB,),
    # kubernetes-sigs/jobset api/jobset/v1alpha2/jobset_types.go
    "kubernetes:jobset.x-k8s.io/v1alpha2:JobSet": (_JOBSET,),
    # kubeflow/trainer pkg/apis/trainer/v1alpha1/{trainjob,trainingruntime}_types.go
    "kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob": (
        "spec.runtimePatches.*.trainingRuntimeSpec.template." + _JOBSET,
    ),
    "kubernetes:trainer.kubeflow.org/v1alpha1:TrainingRuntime": ("spec.template." + _JOBSET,),
    "kubernetes:trainer.kubeflow.org/v1alpha1:ClusterTrainingRuntime": ("spec.template." + _JOBSET,),
    # kubeflow/training-operator pkg/apis/kubeflow.org/v1/*_types.go
    "kubernetes:kubeflow.org/v1:PyTorchJob": ("spec.pytorchReplicaSpecs.*.template",),
    "kubernetes:kubeflow.org/v1:TFJob": ("spec.tfReplicaSpecs.*.template",),
    "kubernetes:kubeflow.org/v1:XGBoostJob": ("spec.xgbReplicaSpecs.*.template",),
    "kubernetes:kubeflow.org/v1:PaddleJob": ("spec.paddleReplicaSpecs.*.template",),
    "kubernetes:kubeflow.org/v1:JAXJob": ("spec.jaxReplicaSpecs.*.template",),
    "kubernetes:kubeflow.org/v1:MPIJob": ("spec.mpiReplicaSpecs.*.template",),
    # kubeflow/mpi-operator pkg/apis/kubeflow/v2beta1/types.go
    "kubernetes:kubeflow.org/v2beta1:MPIJob": ("spec.mpiReplicaSpecs.*.template",),
    # ray-project/kuberay ray-operator/apis/ray/v1/*_types.go
    "kubernetes:ray.io/v1:RayCluster": tuple(f"spec.{place}" for place in _RAY),
    "kubernetes:ray.io/v1:RayJob": tuple(f"spec.rayClusterSpec.{place}" for place in _RAY),
    "kubernetes:ray.io/v1:RayService": tuple(f"spec.rayClusterConfig.{place}" for place in _RAY),
    # kubernetes-sigs/lws api/leaderworkerset/v1/leaderworkerset_types.go
    "kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet": (
        "spec.leaderWorkerTemplate.leaderTemplate",
        "spec.leaderWorkerTemplate.workerTemplate",
    ),
}
KINDS = tuple(_PLACES)
"""All kinds with a pod template."""
DAEMON = "kubernetes:apps/v1:DaemonSet"
TRAIN_JOB = "kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob"
_ACCELERATORS = (
    *("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*", "amd.com/gpu", "habana.ai/gaudi"),
    *("aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice", "google.com/tpu"),
)


@dataclass(frozen=True)
class PodTemplate:
    """Pod template: path of the spec, spec, and metadata of its pods."""

    path: str
    spec: Mapping[str, Any]
    metadata: Mapping[str, Any]

    def containers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """(path, container) of every container, with init and ephemeral containers."""
        for group in ("containers", "initContainers", "ephemeralContainers"):
            for index, container in enumerate(self.spec.get(group) or ()):
                yield f"{self.path}.{group}[{index}]", container or {}

    def ends_before(self, container: Mapping[str, Any]) -> bool:
        """Return whether it is an init container that ends before the others start."""
        inits = self.spec.get("initContainers") or ()
        return any(one is container for one in inits) and container.get("restartPolicy") != "Always"

    def volume(self, name: Any) -> Mapping[str, Any] | None:
        """The volume with a name."""
        volumes = (volume for volume in self.spec.get("volumes") or () if volume)
        return next((volume for volume in volumes if volume.get("name") == name), None)


def templates(resource: Resource) -> Iterator[PodTemplate]:
    """The pod templates of a resource of one of `KINDS`."""
    for place in _PLACES[resource.kind]:
        steps = place.split(".") if place else []
        for path, found in _at(resource.props, steps, ""):
            spec = f"{path}.spec" if path else "spec"
            yield PodTemplate(spec, found.get("spec") or {}, found.get("metadata") or {})


def containers(resource: Resource) -> Iterator[tuple[str, Mapping[str, Any], PodTemplate]]:
    """(path, container, its template) of every container of a resource."""
    for template in templates(resource):
        for path, container in template.containers():
            yield path, container, template


def _at(value: Any, steps: Sequence[str], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not steps:
        if isinstance(value, dict):
            yield path, value
        return
    step, *rest = steps
    if step != "*":
        if isinstance(value, dict):
            yield from _at(value.get(step), rest, f"{path}.{step}" if path else step)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _at(one, rest, f"{path}.{key}")
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _at(one, rest, f"{path}[{index}]")


def is_accelerator(name: str) -> bool:
    """Return whether an extended resource is a GPU or another accelerator."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _ACCELERATORS)


def accelerators(resources: Any) -> dict[str, tuple[Any, Any]]:
    """(request, limit) of each accelerator in the `resources` of a container."""
    asked, limited = (resources or {}).get("requests") or {}, (resources or {}).get("limits") or {}
    names = [name for name in dict.fromkeys([*asked, *limited]) if is_accelerator(name)]
    found = {name: (asked.get(name), limited.get(name)) for name in names}
    return {
        name: pair for name, pair in found.items() if any(amount(one) != 0 for one in pair if one is not None)
    }


def repository(image: Any) -> str:
    """An image without its tag and digest."""
    name = str(image or "").partition("@")[0]
    head, slash, tail = name.rpartition("/")
    return head + slash + tail.partition(":")[0]


def is_node_agent(resource: Resource, container: Mapping[str, Any], patterns: Sequence[str]) -> bool:
    """Return whether it is a daemon that may access its node.

    Only as a daemon: in other pods, the user of such an image also chooses its command.
    """
    if resource.kind != DAEMON:
        return False
    image = repository(container.get("image"))
    return any(fnmatch.fnmatchcase(image, pattern) for pattern in patterns)
