"""Resource limits of pods with accelerators, and GPU quotas of teams."""

import fnmatch
from collections.abc import Iterator, Mapping
from typing import Any

from infra.quantity import amount
from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.kubernetes.objects import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    NAMESPACE,
    local_queues_of,
    metadata,
    namespace_of,
    objects_in,
    spec,
)
from policies.rules.kubernetes.pods import (
    KINDS,
    TRAIN_JOB,
    PodTemplate,
    accelerators,
    containers,
    is_accelerator,
)
from policies.stack import Stack

_RANGE, _QUOTA = "kubernetes:core/v1:LimitRange", "kubernetes:core/v1:ResourceQuota"
_BINDING = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"
_SHM = "/dev/shm"  # noqa: S108 - the path in question
_WRITERS = ("admin", "cluster-admin", "edit")


@CATALOG.rule_around(
    "MLS-K8S-04",
    "high",
    KINDS,
    "Without a memory limit one job can kill the others of its machine; with the default of 64 MiB of"
    " shared memory, NCCL and data loaders of torch fail with a bus error.",
    "Give GPUs the same request and limit, set limits.memory, mount an emptyDir in memory at /dev/shm.",
    ("CKV_K8S_13", "NCCL guide, Troubleshooting, Shared Memory"),
)
def gpu_containers_are_bounded(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """A container with GPUs has equal request and limit, a memory limit, and shared memory for torch."""
    found = [
        (path, container, template)
        for path, container, template in containers(resource)
        if accelerators(container.get("resources"))
    ]
    per_node = _per_node(resource)
    if not found and not accelerators(per_node):
        raise NotApplicableError("it asks for no GPU")
    if accelerators(per_node):
        yield from _limited("spec.trainer.resourcesPerNode", per_node, False)
    for path, container, template in found:
        pods = ((template.spec.get("resources") or {}).get("limits") or {}).get("memory")
        bounded = bool(pods) or _has_default_limit(resource, stack)
        yield from _limited(f"{path}.resources", container["resources"], bounded)
        if _needs_shared_memory(resource, container, template):
            yield from _shared_memory(path, container, template)


def _per_node(resource: Resource) -> Any:
    """Resources per node of a TrainJob, which replace those of its runtime."""
    trainer = spec(resource).get("trainer") if resource.kind == TRAIN_JOB else None
    return (trainer or {}).get("resourcesPerNode") or {}


def _limited(path: str, resources: Any, bounded: bool) -> Iterator[Violation]:
    for name, (asked, limit) in accelerators(resources).items():
        # An absent request is the limit; Kubernetes rejects the pod, not the object that creates it.
        if limit is None:
            yield Violation(f"it asks for {name} without a limit", f"{path}.limits")
        elif asked is not None and amount(asked) != amount(limit):
            yield Violation(f"it asks for {asked} of {name} with a limit of {limit}", f"{path}.requests")
    if not bounded and not (resources.get("limits") or {}).get("memory"):
        yield Violation("it has GPUs and no memory limit", f"{path}.limits")


def _has_default_limit(resource: Resource, stack: Stack) -> bool:
    return namespace_of(resource) in stack.once(_namespaces_with_default_limit)


def _namespaces_with_default_limit(stack: Stack) -> set[str]:
    return {
        namespace_of(limits)
        for limits in stack.all(_RANGE)
        for row in spec(limits).get("limits") or ()
        if row
        and row.get("type") == "Container"
        and ((row.get("default") or {}).get("memory") or (row.get("max") or {}).get("memory"))
    }


def _needs_shared_memory(resource: Resource, container: Mapping[str, Any], template: PodTemplate) -> bool:
    """Return whether it uses torch, or NCCL between several GPUs, while others run or alone."""
    if template.ends_before(container):
        return False
    words = [container.get("image"), *(container.get("command") or ()), *(container.get("args") or ())]
    labels = {**(metadata(resource).get("labels") or {}), **(template.metadata.get("labels") or {})}
    several = sum(amount(limit) or 0 for _, limit in accelerators(container.get("resources")).values()) > 1
    return (
        several
        or resource.kind.endswith(":PyTorchJob")
        or labels.get("trainer.kubeflow.org/framework") == "torch"
        or any("torch" in str(word) for word in words)
    )


def _shared_memory(path: str, container: Mapping[str, Any], template: PodTemplate) -> Iterator[Violation]:
    if template.spec.get("hostIPC") is True:
        return
    mounts = [mount for mount in container.get("volumeMounts") or () if mount]
    mount = next((one for one in mounts if str(one.get("mountPath")).rstrip("/") == _SHM), None)
    if mount is None:
        yield Violation("nothing is mounted at /dev/shm: it has 64 MiB there", f"{path}.volumeMounts")
        return
    volume = template.volume(mount.get("name")) or {}
    if "emptyDir" in volume and (volume["emptyDir"] or {}).get("medium") != "Memory":
        yield Violation("the mount at /dev/shm is on a disk", f"{template.path}.volumes")


@CATALOG.rule_around(
    "MLS-K8S-05",
    "medium",
    (NAMESPACE,),
    "Without a quota the team that starts first has every GPU, and the bill of it.",
    "Add a ResourceQuota of requests.nvidia.com/gpu, or lead its queues to ClusterQueues with GPUs.",
)
def teams_have_a_gpu_quota(namespace: Resource, stack: Stack) -> Iterator[Violation]:
    """The namespace of a team has a quota of GPUs, of Kubernetes or of Kueue."""
    queues = list(objects_in(namespace, stack, *LOCAL_QUEUES))
    if not queues and not _is_of_a_team(namespace, stack):
        raise NotApplicableError("no team works in it")
    if any(_limits_gpus(quota) for quota in objects_in(namespace, stack, _QUOTA)):
        return
    if not queues:
        yield Violation("nothing limits how many GPUs its pods take", "metadata.name")
    unlimited = [queue for queue in queues if not _leads_to_quota(queue, stack)]
    for queue in unlimited:
        yield Violation(f"its queue {metadata(queue).get('name')} leads to no quota of GPUs", "metadata.name")


def _is_of_a_team(namespace: Resource, stack: Stack) -> bool:
    name = str(metadata(namespace).get("name"))
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in stack.settings.team_namespaces):
        return True
    return any(_lets_members_write(binding) for binding in objects_in(namespace, stack, _BINDING))


def _lets_members_write(binding: Resource) -> bool:
    """Return whether a binding lets members start pods, by a default role of clusters."""
    role = binding.props.get("roleRef") or {}
    if role.get("kind") != "ClusterRole" or role.get("name") not in _WRITERS:
        return False
    subjects = [one for one in binding.props.get("subjects") or () if one]
    members = [one for one in subjects if one.get("kind") in ("Group", "User")]
    return any(not str(one.get("name")).startswith("system:") for one in members)


def _limits_gpus(quota: Resource) -> bool:
    """Return whether it limits GPUs of all pods: a quota with a scope applies to some of them."""
    if spec(quota).get("scopes") or spec(quota).get("scopeSelector"):
        return False
    # Kubernetes, Resource Quotas: of extended resources only `requests.` can be limited.
    hard = spec(quota).get("hard") or {}
    return any(is_accelerator(key.removeprefix("requests.")) for key in hard if key.startswith("requests."))


def _cluster_queues(stack: Stack) -> dict[str, Resource]:
    return {queue.urn: one for one in stack.all(*CLUSTER_QUEUES) for queue in local_queues_of(one, stack)}


def _leads_to_quota(queue: Resource, stack: Stack) -> bool:
    owner = stack.once(_cluster_queues).get(queue.urn)
    if owner is None:
        return False
    groups = [group for group in spec(owner).get("resourceGroups") or () if group]
    return any(is_accelerator(str(name)) for group in groups for name in group.get("coveredResources") or ())
