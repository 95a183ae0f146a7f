"""Which stacks are for training: others have machines too, and need no care for GPUs."""

from collections.abc import Iterable, Iterator
from typing import Any

from policies.catalogue import NotApplicableError, Violation
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
# Jobs of Kubernetes itself are for anything.
_TRAINING_JOBS = tuple(kind for kind in JOBS if not kind.startswith("kubernetes:batch/"))
# Queues of jobs, operators of training, and what makes accelerators usable; as their charts are called.
_OPERATORS = (
    *("kueue", "jobset", "kubeflow-trainer", "training-operator", "mpi-operator", "kuberay-operator"),
    *("volcano", "gpu-operator", "nvidia-device-plugin", "neuron-helm-chart"),
)
# Labels by which Karpenter and EKS Auto Mode choose machines (awsdocs/amazon-eks-user-guide@01385604
# latest/ug/automode/create-node-pool.adoc, supported labels); a category is a family without its generation.
_MACHINES = {"instance-type": "", "instance-family": "", "instance-category": "1"}
_DEVICES = ("instance-gpu-", "instance-accelerator-")


def if_it_trains(stack: Stack, found: Iterable[Violation]) -> Iterator[Violation]:
    """What was found, where the stack is for training: it has accelerators, jobs of training or their queue.

    Where nothing was found the stack does not matter. Raises NotApplicableError for any other stack, and
    UndeterminedError where only a value that is not known could say so.
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
            # Another resource may say it for certain.
            unknown = unknown or error
    if unknown:
        raise unknown
    # Of Kubernetes an account does not tell; without accelerators there are only queues to miss.
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
