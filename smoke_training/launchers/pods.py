"""The pod of one node, as plain data (Kubernetes core/v1), the same under every controller (pure)."""

from collections.abc import Mapping, Sequence
from typing import Any

from smoke_training.launchers.runplan import PER_NODE, Mount, RunPlan

Body = dict[str, Any]

CONTAINER = "node"
RUN_LABEL = "trainstack.dev/run"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
TOPOLOGY_ANNOTATION = "kueue.x-k8s.io/podset-preferred-topology"
INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
GPU = "nvidia.com/gpu"


def metadata(plan: RunPlan, name: str | None = None) -> Body:
    """Metadata of a run's object; the queue sees it by its labels."""
    labels = {**plan.labels, RUN_LABEL: plan.name}
    if plan.queue:
        labels[QUEUE_LABEL] = plan.queue
    if plan.priority:
        labels[PRIORITY_LABEL] = plan.priority
    found: Body = {"name": name or plan.name}
    if plan.namespace:
        found["namespace"] = plan.namespace
    return {**found, "labels": labels}


def body(plan: RunPlan, api: str, kind: str, spec: Body) -> Body:
    """An object of the run's own name."""
    return {"apiVersion": api, "kind": kind, "metadata": metadata(plan), "spec": spec}


def pod_labels(plan: RunPlan) -> dict[str, str]:
    """Labels of the run's pods."""
    return {**plan.labels, RUN_LABEL: plan.name}


def template(
    plan: RunPlan,
    words: Sequence[str],
    env: Sequence[Body],
    *,
    subdomain: str | None,
    container: str = CONTAINER,
) -> Body:
    """Pod template: one pod takes its share of one node, and no two pods of the run share a node."""
    head: Body = {"labels": pod_labels(plan)}
    if plan.topology_level:
        head["annotations"] = {TOPOLOGY_ANNOTATION: plan.topology_level}
    return {"metadata": head, "spec": _spec(plan, words, env, subdomain, container)}


def resources(plan: RunPlan) -> Body:
    """Requests equal to limits: a run is not to depend on its neighbours."""
    amounts = {"cpu": str(plan.cpu), "memory": f"{plan.memory_gib}Gi"}
    if plan.gpus_per_node:
        amounts[GPU] = str(plan.gpus_per_node)
    amounts |= plan.devices
    found: Body = {"requests": amounts, "limits": amounts}
    return (
        {**found, "claims": [{"name": name} for name in plan.device_claims]} if plan.device_claims else found
    )


def environment(plan: RunPlan, run: str | None = None) -> list[Body]:
    """The plan's own variables; `run` is the run's name where Kubernetes completes it, else the plan's."""
    place = [{"name": "WORK_DIR", "value": f"{plan.work_root}/{run or plan.name}"}] if plan.work_root else []
    return [*place, *({"name": name, "value": literal(value)} for name, value in plan.env.items())]


def literal(text: str) -> str:
    """A text that Kubernetes leaves as it is: `$(NAME)` would be replaced, in commands and in variables."""
    return text.replace("$(", "$$(")


def indexed_environment(plan: RunPlan, master: str, run: str | None = None) -> list[Body]:
    """Where a node of an indexed Job stands, and the plan's variables after it."""
    path = f"metadata.annotations['{INDEX_ANNOTATION}']"
    return [
        {"name": "NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": path}}},
        {"name": "MASTER_ADDR", "value": master},
        {"name": "MASTER_PORT", "value": str(plan.master_port)},
        *environment(plan, run),
    ]


def indexed_words(plan: RunPlan) -> list[str]:
    """The command of a node of an indexed Job, which Kubernetes completes from `indexed_environment`."""
    if plan.command_per == PER_NODE:
        return node_words(plan)
    return [
        "torchrun",
        f"--nnodes={plan.nodes}",
        "--node-rank=$(NODE_RANK)",
        f"--nproc-per-node={plan.ranks}",
        "--master-addr=$(MASTER_ADDR)",
        f"--master-port={plan.master_port}",
        f"--max-restarts={plan.max_restarts}",
        *node_words(plan),
    ]


def node_words(plan: RunPlan) -> list[str]:
    """The plan's own command as Kubernetes takes it."""
    return [literal(word) for word in plan.command]


def volumes(plan: RunPlan) -> list[Body]:
    """The volumes behind the mounts."""
    return [{"name": mount.name, **_source(mount)} for mount in plan.mounts]


def volume_mounts(plan: RunPlan) -> list[Body]:
    """The mounts of the container."""
    return [_mounted(mount) for mount in plan.mounts]


def _spec(
    plan: RunPlan, words: Sequence[str], env: Sequence[Body], subdomain: str | None, container: str
) -> Body:
    spec: Body = {"restartPolicy": "Never"}
    if subdomain:
        spec["subdomain"] = subdomain
    if plan.service_account:
        spec["serviceAccountName"] = plan.service_account
    spec |= {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": plan.grace_s,
        "affinity": _affinity(plan),
    }
    if plan.gpus_per_node:
        spec["tolerations"] = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    spec["securityContext"] = _pod_security(plan)
    if plan.device_claims:
        spec["resourceClaims"] = [
            {"name": name, "resourceClaimTemplateName": template}
            for name, template in plan.device_claims.items()
        ]
    if plan.root_folder:
        spec["initContainers"] = [_folder_maker(plan, plan.root_folder)]
    spec["containers"] = [_container(plan, words, env, container)]
    if plan.mounts:
        spec["volumes"] = volumes(plan)
    return spec


def _container(plan: RunPlan, words: Sequence[str], env: Sequence[Body], name: str) -> Body:
    found: Body = {
        "name": name,
        "image": plan.image,
        "command": list(words),
        "env": list(env),
        "resources": resources(plan),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": _unprivileged(plan, {"runAsNonRoot": True} if plan.user_id else {}),
    }
    if plan.mounts:
        found["volumeMounts"] = volume_mounts(plan)
    return found


def _affinity(plan: RunPlan) -> Body:
    # By affinity, not by nodeSelector: Kueue writes its own selectors into the latter.
    found: Body = {}
    if plan.node_labels:
        expressions = [
            {"key": key, "operator": "In", "values": [value]}
            for key, value in sorted(plan.node_labels.items())
        ]
        terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        found["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {RUN_LABEL: plan.name}},
    }
    found["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    return found


def _pod_security(plan: RunPlan) -> Body:
    found: Body = {"seccompProfile": {"type": "RuntimeDefault"}}
    return {"runAsUser": plan.user_id, "runAsGroup": plan.user_id, **found} if plan.user_id else found


def _unprivileged(plan: RunPlan, context: Mapping[str, Any]) -> Body:
    found: Body = {**context, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {**found, "readOnlyRootFilesystem": True} if plan.read_only_root else found


def _folder_maker(plan: RunPlan, folder: str) -> Body:
    return {
        "name": "folder",
        "image": plan.image,
        "command": ["install", "-d", "-m", "1777", folder],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "securityContext": _unprivileged(plan, {"runAsUser": 0, "runAsGroup": 0}),
        "volumeMounts": [_mounted(mount) for mount in plan.mounts if folder.startswith(mount.path)],
    }


def _mounted(mount: Mount) -> Body:
    found: Body = {"name": mount.name, "mountPath": mount.path}
    if mount.sub_path:
        found["subPath"] = mount.sub_path
    return {**found, "readOnly": True} if mount.read_only else found


def _source(mount: Mount) -> Body:
    if mount.claim:
        return {"persistentVolumeClaim": {"claimName": mount.claim}}
    if mount.config_map:
        return {"configMap": {"name": mount.config_map}}
    if mount.memory_gib:
        return {"emptyDir": {"medium": "Memory", "sizeLimit": f"{mount.memory_gib}Gi"}}
    return {"emptyDir": {}}
