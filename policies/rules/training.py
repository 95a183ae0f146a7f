"""Stacks for training: rules about GPUs do not apply to other stacks."""

from collections.abc import Iterable, Iterator
from typing import Any

from policies.catalog import NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.accelerators import STARTING, machine_of, started
from policies.rules.kubernetes.jobs import KINDS as JOBS
from policies.rules.kubernetes.objects import spec
from policies.rules.kubernetes.pods import KINDS as PODS
from policies.rules.kubernetes.pods import accelerators, containers
from policies.stack import Stack

_KARPENTER = "kubernetes:karpenter.sh/v1:NodePool"
_QUEUES = "kubernetes:kueue.x-k8s.io/"
_CHARTS = ("kubernetes:helm.sh/v3:Release", "kubernetes:helm.sh/v3:Chart", "kubernetes:helm.sh/v4:Chart")
# Jobs of Kubernetes itself may be for any purpose.
_TRAINING_JOBS = tuple(kind for kind in JOBS if not kind.startswith("kubernetes:batch/"))
# Chart names of job queues, training operators, and device plug-ins.
_OPERATORS = (
    *("kueue", "jobset", "kubeflow-trainer", "training-operator", "mpi-operator", "kuberay-operator"),
    *("volcano", "gpu-operator", "nvidia-device-plugin", "neuron-helm-chart"),
)
# Labels by which Karpenter and EKS Auto Mode choose machines (awsdocs/amazon-eks-user-guide@01385604
# latest/ug/automode/create-node-pool.adoc, supported labels); a category is a family without its generation.
_MACHINES = {"instance-type": "", "instance-family": "", "instance-category": "1"}
_DEVICES = ("instance-gpu-", "instance-accelerator-")


def if_it_trains(stack: Stack, found: Iterable[Violation]) -> Iterator[Violation]:
    """Yield violations if the stack is for training: it has accelerators, training jobs or their queue.

    Without violations the stack is not checked. Raises NotApplicableError for other stacks, and
    UndeterminedError if only an unknown value could decide.
    """
    violations = list(found)
    if violations:
        stack.once(_needs_training)
    yield from violations


def _needs_training(stack: Stack) -> None:
    unknown: UndeterminedError | None = None
    for resource in stack.resources:
        try:
            if _is_for_training(resource, stack):
                return
        except UndeterminedError as error:
            # Another resource may decide.
            unknown = unknown or error
    if unknown:
        raise unknown
    # An account does not report Kubernetes objects; without accelerators only queues could be missed.
    stack.all(*STARTING)
    raise NotApplicableError("the stack has no accelerators, and no jobs of training or queue for them")


def _is_for_training(resource: Resource, stack: Stack) -> bool:
    kind = resource.kind
    if kind in STARTING:
        try:
            return any(True for _ in started(resource, stack))
        except NotApplicableError:
            return False
    if kind in _CHARTS:
        chart = str(resource.props.get("chart") or "")
        return chart.rstrip("/").rpartition("/")[2] in _OPERATORS
    if kind == _KARPENTER:
        chosen = ((spec(resource).get("template") or {}).get("spec") or {}).get("requirements")
        return any(_chooses_accelerators(one or {}) for one in chosen or ())
    if kind in _TRAINING_JOBS or kind.startswith(_QUEUES):
        return True
    return kind in PODS and any(accelerators(one.get("resources")) for _, one, _ in containers(resource))


def _chooses_accelerators(requirement: Any) -> bool:
    label = str(requirement.get("key") or "").rpartition("/")[2]
    if requirement.get("operator") in ("NotIn", "DoesNotExist", "Lt"):
        return False
    if label in _MACHINES:
        end = _MACHINES[label]
        return any(machine_of(label, str(name) + end) for name in requirement.get("values") or ())
    return label.startswith(_DEVICES)
