"""The pod of one node, as plain data (Kubernetes core/v1), the same under every controller (pure)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from infra.launchers import plugins
from infra.launchers.runplan import PER_NODE, Mount, RunPlan, Sidecar
from smoke_training import checkpoint_policy

Body = dict[str, Any]

CONTAINER = "node"
RUN_LABEL = "trainstack.dev/run"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
TOPOLOGY_ANNOTATION = "kueue.x-k8s.io/podset-preferred-topology"
# Cluster Autoscaler does not evict the pod: a moved rank would end the whole run.
STAY_ANNOTATION = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
GPU = "nvidia.com/gpu"
EFA = "vpc.amazonaws.com/efa"
# The EFA driver reserves 5128 huge pages of 2 MiB a node, and libfabric uses them: awsdocs/
# amazon-eks-user-guide latest/ug/ml/node-efa.adoc (2024-12-18), whose example requests this much.
EFA_HUGE_PAGES = {"hugepages-2Mi": "5120Mi"}
_SIDECAR_STARTS_S = 120  # four times what Google measured of its slowest (gpudirect-tcpxo/best-practice.md)


def given(fields: Mapping[str, Any]) -> Body:
    """Return the fields of an object that are not None."""
    return {key: value for key, value in fields.items() if value is not None}


def efa(count: int) -> Mapping[str, str]:
    """`RunPlan.devices` for `count` Elastic Fabric Adapters of a node."""
    return {**EFA_HUGE_PAGES, EFA: str(count)} if count else {}


def metadata(plan: RunPlan, name: str | None = None) -> Body:
    """Return metadata of a run's object; the queue uses its labels."""
    queue = given({QUEUE_LABEL: plan.queue or None, PRIORITY_LABEL: plan.priority or None})
    head = {"name": name or plan.name, "namespace": plan.namespace or None}
    return given({**head, "labels": {**pod_labels(plan), **queue}})


def body(plan: RunPlan, api: str, kind: str, spec: Body) -> Body:
    """Return an object of the run's own name."""
    return {"apiVersion": api, "kind": kind, "metadata": metadata(plan), "spec": spec}


def pod_labels(plan: RunPlan) -> dict[str, str]:
    """Labels of the run's pods."""
    return {**plan.labels, RUN_LABEL: plan.name}


def template(
    plan: RunPlan,
    words: Sequence[str],
    env: Sequence[Body],
    *,
    subdomain: str | None = None,
    container: str = CONTAINER,
) -> Body:
    """Return the pod template; no two pods of the run share a node."""
    tolerated = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
    claims = [{"name": n, "resourceClaimTemplateName": made_by} for n, made_by in plan.device_claims.items()]
    spec = {
        "restartPolicy": "Never",
        "subdomain": subdomain or None,
        "serviceAccountName": plan.service_account or None,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": plan.grace_s,
        "affinity": _affinity(plan),
        "tolerations": [tolerated] if plan.gpus_per_node else None,
        "securityContext": given(
            {
                "runAsUser": plan.user_id or None,
                "runAsGroup": plan.user_id or None,
                "seccompProfile": {"type": "RuntimeDefault"},
            }
        ),
        "resourceClaims": claims or None,
        "initContainers": _before(plan) or None,
        "containers": [_container(plan, profiled(plan, words), env, container)],
        "volumes": [*_volumes(plan), *plugins.volumes(plan), *_own(plan, checkpoint_policy.volume)] or None,
    }
    placed = {TOPOLOGY_ANNOTATION: plan.topology_level} if plan.topology_level else {}
    notes = {**plan.annotations, **STAY_ANNOTATION, **placed}
    return {"metadata": given({"labels": pod_labels(plan), "annotations": notes}), "spec": given(spec)}


def resources(plan: RunPlan) -> Body:
    """Requests equal to limits: a run must not depend on its neighbours."""
    amounts = {"cpu": str(plan.cpu), "memory": f"{plan.memory_gib}Gi"}
    if plan.gpus_per_node:
        amounts[GPU] = str(plan.gpus_per_node)
    amounts |= plan.devices
    claims = [{"name": name} for name in plan.device_claims]
    return given({"requests": amounts, "limits": amounts, "claims": claims or None})


def environment(plan: RunPlan, run: str | None = None) -> list[Body]:
    """The plan's own variables; `run` is the run's name where Kubernetes expands it, else the plan's."""
    place = [{"name": "WORK_DIR", "value": f"{plan.work_root}/{run or plan.name}"}] if plan.work_root else []
    return [
        # The node outlives its pods: an accused node must be identifiable later.
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        *place,
        *({"name": name, "value": literal(value)} for name, value in plan.env.items()),
    ]


def literal(text: str) -> str:
    """Escape a text for Kubernetes, which expands `$(NAME)` in commands and variables."""
    return text.replace("$(", "$$(")


def indexed_environment(plan: RunPlan, master: str, run: str | None = None) -> list[Body]:
    """Return the rank variables of a node of an indexed Job, then the plan's variables."""
    path = f"metadata.annotations['{INDEX_ANNOTATION}']"
    return [
        {"name": "NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": path}}},
        {"name": "MASTER_ADDR", "value": master},
        {"name": "MASTER_PORT", "value": str(plan.master_port)},
        *environment(plan, run),
    ]


def indexed_words(plan: RunPlan) -> list[str]:
    """Return the command of a node of an indexed Job, which Kubernetes expands."""
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
    """Return the plan's own command, escaped for Kubernetes."""
    return [literal(word) for word in plan.command]


def profiled(plan: RunPlan, words: Sequence[str]) -> list[str]:
    """Return the command with the variables of the node's profile, if it has one.

    The plan's NCCL variables override it: Google's profiles set NCCL_DEBUG, too.
    """
    if plan.profile is None or not words:
        return list(words)
    own = [f"{name}={literal(value)}" for name, value in plan.env.items() if name.startswith("NCCL_")]
    return ["bash", "-c", 'source "$0" && exec "$@"', plan.profile, *(["env", *own] if own else []), *words]


def _container(plan: RunPlan, argv: Sequence[str], env: Sequence[Body], name: str) -> Body:
    return given(
        {
            "name": name,
            "image": plan.image,
            "command": list(argv),
            "env": list(env),
            "envFrom": checkpoint_policy.variables_from() if plan.checkpoint_policy else None,
            "resources": resources(plan),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": _unprivileged(plan, {"runAsNonRoot": True} if plan.user_id else {}),
            "volumeMounts": [
                *map(_mounted, plan.mounts),
                *plugins.mounts(plan),
                *_own(plan, checkpoint_policy.mount),
            ]
            or None,
        }
    )


def _own(plan: RunPlan, part: Callable[[], Body]) -> list[Body]:
    return [part()] if plan.checkpoint_policy else []


def _affinity(plan: RunPlan) -> Body:
    # By affinity, not by nodeSelector: Kueue writes its own selectors into the latter.
    expressions = [
        {"key": key, "operator": "In", "values": [value] if isinstance(value, str) else [*value]}
        for key, value in sorted(plan.node_labels.items())
    ]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {RUN_LABEL: plan.name}},
    }
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return given(
        {"nodeAffinity": {required: terms} if expressions else None, "podAntiAffinity": {required: [apart]}}
    )


def _unprivileged(plan: RunPlan, context: Mapping[str, Any]) -> Body:
    sealed = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return given({**context, **sealed, "readOnlyRootFilesystem": plan.read_only_root or None})


def _before(plan: RunPlan) -> list[Body]:
    made = [_folder_maker(plan, plan.root_folder)] if plan.root_folder else []
    if plan.plugin:
        made.append(plugins.waiting(plan, plan.plugin, resources(plan), _unprivileged(plan, {})))
    return [*made, *map(_sidecar, plan.sidecars)]


def _sidecar(sidecar: Sidecar) -> Body:
    """Return a restartable init container (KEP-753): it ends with the run, so that the Job completes."""
    probe = {
        "exec": {"command": ["cat", sidecar.ready_file]},
        "periodSeconds": 5,
        "failureThreshold": _SIDECAR_STARTS_S // 5,
    }
    return given(
        {
            "name": sidecar.name,
            "image": sidecar.image,
            "restartPolicy": "Always",
            "command": list(sidecar.command),
            "env": [{"name": name, "value": literal(text)} for name, text in sidecar.env.items()] or None,
            "resources": {"requests": {"cpu": str(sidecar.cpu), "memory": f"{sidecar.memory_gib}Gi"}},
            "startupProbe": probe if sidecar.ready_file else None,
            "securityContext": {
                "runAsUser": 0,
                "runAsGroup": 0,
                "allowPrivilegeEscalation": False,
                **({"capabilities": {"add": list(sidecar.capabilities)}} if sidecar.capabilities else {}),
            },
            "volumeMounts": [_mounted(mount) for mount in sidecar.mounts] or None,
        }
    )


def _volumes(plan: RunPlan) -> list[Body]:
    mounts = [*plan.mounts, *(mount for sidecar in plan.sidecars for mount in sidecar.mounts)]
    return list({mount.name: {"name": mount.name, **_source(mount)} for mount in reversed(mounts)}.values())[
        ::-1
    ]


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
    path = {"name": mount.name, "mountPath": mount.path, "subPath": mount.sub_path or None}
    return given({**path, "readOnly": mount.read_only or None})


def _source(mount: Mount) -> Body:
    if mount.claim:
        return {"persistentVolumeClaim": {"claimName": mount.claim}}
    if mount.config_map:
        return {"configMap": {"name": mount.config_map}}
    if mount.secret:
        return {"secret": {"secretName": mount.secret}}
    if mount.host:
        return {"hostPath": {"path": mount.host}}
    if mount.memory_gib:
        return {"emptyDir": {"medium": "Memory", "sizeLimit": f"{mount.memory_gib}Gi"}}
    return {"emptyDir": {}}
