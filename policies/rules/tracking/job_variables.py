"""Tracking variables of training jobs."""

from collections.abc import Iterator, Mapping
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.kubernetes.pods import KINDS, TRAIN_JOB, accelerators, containers
from policies.rules.properties import each
from policies.stack import Stack

# Kinds with pods that terminate.
_JOBS = tuple(kind for kind in KINDS if kind.endswith(("Job", "JobSet")))
_CONFIG = "kubernetes:core/v1:ConfigMap"
_URI, _EXPERIMENT = ("MLFLOW_TRACKING_URI",), ("MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID")


@CATALOG.rule_around(
    "MLS-TRK-05",
    "medium",
    _JOBS,
    "A model without its code, image and parameters can be neither explained nor reproduced.",
    "Set MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME and GIT_SHA in the container, and name its image by"
    " digest.",
)
def training_jobs_are_traceable(job: Resource, stack: Stack) -> Iterator[Violation]:
    """Training jobs name their tracking server, experiment, commit, and image by digest."""
    trained = list(_trained(job))
    if not trained:
        raise NotApplicableError("it requests no accelerator")
    for path, container in trained:
        names = set(_variables(container, job, stack))
        for wanted in (_URI, _EXPERIMENT, stack.settings.commit_variables):
            if not names & set(wanted):
                yield Violation(f"it does not set {' or '.join(wanted)}", f"{path}.env")
        if container.get("image") and "@sha256:" not in container["image"]:
            yield Violation(f"{container['image']} is not named by digest", f"{path}.image")


def _trained(job: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(path, container) with accelerators that trains; the trainer of a TrainJob has them by its runtime.

    An init container that ends before prepares the pod: it requests GPUs where the pod's class needs that.
    """
    if job.kind == TRAIN_JOB:
        yield from each(job.props, "spec", "trainer")
    for path, container, template in containers(job):
        if accelerators(container.get("resources")) and not template.ends_before(container):
            yield path, container


def _variables(container: Mapping[str, Any], job: Resource, stack: Stack) -> Iterator[str]:
    for _, entry in each(container, "env"):
        yield str(entry.get("name"))
    space = (job.props.get("metadata") or {}).get("namespace")
    for _, source in each(container, "envFrom", "configMapRef"):
        found = [
            one.props.get("data") or {}
            for one in stack.all(_CONFIG)
            for _, metadata in each(one.props, "metadata")
            if metadata.get("name") == source.get("name") and metadata.get("namespace") == space
        ]
        if not found:
            raise UndeterminedError(f"the ConfigMap {source.get('name')} is not in the stack")
        yield from found[0]
