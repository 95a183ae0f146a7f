"""CEL expressions for the rules K8S that judge a single object.

Each is equivalent to the function of its rule in `policies/rules/kubernetes/`; tests/cluster/policies
compares both on a real API server. Pods are always checked. Workloads of known kinds are checked too, so that
users get the error at once.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from policies.settings import RuleSettings

# Group, version and resources of workloads.
_WORKLOADS = (
    ("apps", "v1", ("deployments", "statefulsets", "daemonsets", "replicasets")),
    ("batch", "v1", ("jobs", "cronjobs")),
    ("jobset.x-k8s.io", "*", ("jobsets",)),
)
_PODS = """
  object.kind == 'Pod' ? dyn([object.spec])
  : object.kind == 'CronJob' ? dyn([object.spec.jobTemplate.spec.template.spec])
  : object.kind == 'JobSet' ? dyn(object.spec.replicatedJobs.map(job, job.template.spec.template.spec))
  : dyn([object.spec.template.spec])
"""
_JOBS = """
  object.kind == 'CronJob' ? dyn([object.spec.jobTemplate.spec])
  : object.kind == 'JobSet' ? dyn(object.spec.replicatedJobs.map(job, job.template.spec))
  : dyn([object.spec])
"""
_ALL = "(pod.containers + pod.?initContainers.orValue([]) + pod.?ephemeralContainers.orValue([]))"
# Pods created by the controller of DaemonSets: any user can set an owner reference on a pod.
_DAEMON = (
    "object.kind == 'DaemonSet'"
    " || request.userInfo.username == 'system:serviceaccount:kube-system:daemon-set-controller'"
)
_POOL_LABELS = ("eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "karpenter.sh/nodepool")


@dataclass(frozen=True)
class Expression:
    """Admission check of an object."""

    rule: str
    """The id."""
    matches: tuple[Mapping[str, Any], ...]
    holds: str
    """CEL, true for objects that pass."""
    variables: Mapping[str, str] = field(default_factory=dict)


def expressions(settings: RuleSettings) -> list[Expression]:
    """Expressions of all rules that judge a single object."""
    return [_privileged(settings), _host(settings), _accelerated(), _ending(settings), _queue()]


def _on(group: str, version: str, *resources: str, operations: tuple[str, ...] = ("CREATE", "UPDATE")) -> Any:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": list(resources),
    }


def _pods_and_workloads() -> tuple[Mapping[str, Any], ...]:
    # Debug containers are added by an update of a subresource of the pod.
    return (
        _on("", "v1", "pods", operations=("CREATE",)),
        _on("", "v1", "pods/ephemeralcontainers", operations=("UPDATE",)),
        *(_on(group, version, *resources) for group, version, resources in _WORKLOADS),
    )


def _agents(settings: RuleSettings) -> str:
    """A regular expression of the images of node agents, with any tag and digest."""
    names = (re.escape(pattern).replace(r"\*", ".*") for pattern in settings.node_agents)
    return f"^({'|'.join(names)})(:[^/@]*)?(@.*)?$"


def _privileged(settings: RuleSettings) -> Expression:
    free = (
        "one.?securityContext.?privileged.orValue(false) == false"
        " && one.?securityContext.?windowsOptions.?hostProcess.orValue("
        "pod.?securityContext.?windowsOptions.?hostProcess.orValue(false)) == false"
    )
    holds = f"variables.pods.all(pod, {_ALL}.all(one, ({_agent(settings)}) || ({free})))"
    return Expression("MLS-K8S-01", _pods_and_workloads(), holds, {"pods": _PODS, "daemon": _DAEMON})


def _agent(settings: RuleSettings) -> str:
    return f"variables.daemon && one.?image.orValue('').matches(r'{_agents(settings)}')"


def _host(settings: RuleSettings) -> Expression:
    """A pod bound to a listed pool only by affinity is denied; it can use a nodeSelector instead."""
    pools = json.dumps(list(settings.host_network_pools))
    labels = [*_POOL_LABELS, "trainstack.dev/pool"]
    bound = " || ".join(f"pod.?nodeSelector[?'{label}'].orValue('') in {pools}" for label in labels)
    shared = "pod.?hostNetwork.orValue(false) == false && pod.?hostIPC.orValue(false) == false"
    alone = "pod.?hostPID.orValue(false) == false"
    holds = (
        f"variables.pods.all(pod, {_ALL}.all(one, {_agent(settings)})"
        f" || (({alone}) && (({shared}) || {bound})))"
    )
    return Expression("MLS-K8S-02", _pods_and_workloads(), holds, {"pods": _PODS, "daemon": _DAEMON})


def _accelerated() -> Expression:
    """Pods only: by then, the LimitRange of their namespace has set its limits."""
    kinds = r"^(nvidia\.com/(gpu(\.shared)?|mig-.*)|amd\.com/gpu|habana\.ai/gaudi|google\.com/tpu|"
    kinds += r"aws\.amazon\.com/neuron(core|device)?)$"
    limits = "one.?resources.?limits.orValue({})"
    number = f"{limits}.map(name, name.matches(r'{kinds}') ? int(string({limits}[name])) : 0).sum()"
    memory = f"'memory' in {limits} || 'memory' in pod.?resources.?limits.orValue({{}})"
    words = "[one.?image.orValue('')] + one.?command.orValue([]) + one.?args.orValue([])"
    labelled = "object.metadata.?labels[?'trainer.kubeflow.org/framework'].orValue('') == 'torch'"
    torch = f"{number} > 1 || {labelled} || ({words}).exists(word, word.contains('torch'))"
    # Names are unique in a pod. An init container that ends before the others start does not train.
    before = (
        "pod.?initContainers.orValue([])"
        ".exists(init, init.name == one.name && init.?restartPolicy.orValue('') != 'Always')"
    )
    volume = (
        "pod.?volumes.orValue([]).exists(volume, volume.name == mount.name"
        " && (!has(volume.emptyDir) || volume.emptyDir.?medium.orValue('') == 'Memory'))"
    )
    mounted = (
        "pod.?hostIPC.orValue(false) || one.?volumeMounts.orValue([])"
        f".exists(mount, mount.mountPath in ['/dev/shm', '/dev/shm/'] && {volume})"
    )
    bounded = f"({memory}) && ({before} || !({torch}) || {mounted})"
    holds = f"variables.pods.all(pod, {_ALL}.all(one, {number} == 0 || ({bounded})))"
    return Expression("MLS-K8S-04", (_on("", "v1", "pods", operations=("CREATE",)),), holds, {"pods": _PODS})


def _ending(settings: RuleSettings) -> Expression:
    most = settings.most_job_retries
    # A Job of a JobSet or CronJob was checked with its owner, which has the labels.
    made = (
        "(has(object.metadata.ownerReferences)"
        " && request.userInfo.username.startsWith('system:serviceaccount:'))"
    )
    limited = "'kueue.x-k8s.io/max-exec-time-seconds' in object.metadata.?labels.orValue({})"
    retries = (
        f"(has(job.backoffLimitPerIndex) ? job.backoffLimitPerIndex : job.?backoffLimit.orValue(6)) <= {most}"
    )
    holds = f"{made} || variables.jobs.all(job, (has(job.activeDeadlineSeconds) || {limited}) && {retries})"
    kinds = (_on("batch", "v1", "jobs", "cronjobs"), _on("jobset.x-k8s.io", "*", "jobsets"))
    return Expression("MLS-K8S-06", kinds, holds, {"jobs": _JOBS})


def _queue() -> Expression:
    named = (
        "chosen.?matchLabels.orValue({}).size() > 0 || chosen.?matchExpressions.orValue([])"
        ".exists(one, one.operator == 'In'"
        " || (one.operator == 'Exists' && one.key != 'kubernetes.io/metadata.name'))"
    )
    holds = f"!has(object.spec.namespaceSelector) || [object.spec.namespaceSelector].all(chosen, {named})"
    return Expression("MLS-K8S-08", (_on("kueue.x-k8s.io", "*", "clusterqueues"),), holds)
