"""Idle pools, notebooks and endpoints."""

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from policies import facts
from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.pools import NODE_GROUP, is_prepaid, least_nodes, machines_of, template_of
from policies.stack import Stack

_ENDS = (
    "aws:budgets/budgetAction:BudgetAction",
    "aws:scheduler/schedule:Schedule",
    "aws:autoscaling/schedule:Schedule",
)
_NOTEBOOK = "aws:sagemaker/notebookInstance:NotebookInstance"
_LIFECYCLE = "aws:sagemaker/notebookInstanceLifecycleConfiguration:NotebookInstanceLifecycleConfiguration"
_ENDPOINT, _TARGET = (
    "aws:sagemaker/endpointConfiguration:EndpointConfiguration",
    "aws:appautoscaling/target:Target",
)
_PRODUCTION = ("production", "prod")


@CATALOG.rule_around(
    "MLS-COST-03",
    "medium",
    (NODE_GROUP, _NOTEBOOK, _ENDPOINT),
    "Nights and weekends are two thirds of a week, and idle GPUs cost as much as busy ones.",
    "Let the pool or endpoint shrink to zero, stop a notebook when it is idle, or stop it by a schedule or a"
    " budget action.",
    ("cloud-custodian offhours",),
)
def idle_gpus_end(group: Resource, stack: Stack) -> Iterator[Violation]:
    """Outside of production, pools, notebooks and endpoints with GPUs shrink to zero or are stopped."""
    if group.kind == _NOTEBOOK:
        machines = [str(group.props.get("instanceType")).removeprefix("ml.")]
    elif group.kind == _ENDPOINT:
        machines = [str(one.get("instanceType")).removeprefix("ml.") for _, one in _variants(group)]
    else:
        machines = machines_of(group, template_of(group, stack))
    if not any(facts.gpu_type(machine) for machine in machines):
        raise NotApplicableError("its nodes have no GPU")
    if str(group.tags.get("environment")).lower() in _PRODUCTION:
        raise NotApplicableError("it is tagged as production")
    if group.kind == _NOTEBOOK:
        if not stack.all(*_ENDS) and not _stops_itself(group, stack):
            yield Violation("nothing stops it when it is idle", "lifecycleConfigName")
        return
    if group.kind == _ENDPOINT:
        if not stack.all(*_ENDS):
            yield from _of_endpoint(group, stack)
        return
    if is_prepaid(group, stack):
        raise NotApplicableError("its Capacity Block is paid in advance, used or not")
    least = least_nodes(group)
    if least > 0 and not stack.all(*_ENDS):
        yield Violation(f"{least} nodes always run, and nothing stops them", "scalingConfig.minSize")


def _variants(endpoint: Resource) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from endpoint.items("productionVariants")
    yield from endpoint.items("shadowProductionVariants")


def _stops_itself(notebook: Resource, stack: Stack) -> bool:
    """Return whether a script of its lifecycle configuration looks for idle time.

    Raises UndeterminedError where the script is not known.
    """
    name = notebook.props.get("lifecycleConfigName")
    if not name:
        return False
    for one in stack.all(_LIFECYCLE):
        if name in (one.id, one.name, one.props.get("name")):
            return b"idle" in _text(str(one.props.get("onStart") or "")).lower()
    raise UndeterminedError(f"the script of {name} is not known")


def _text(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        return encoded.encode()


def _of_endpoint(endpoint: Resource, stack: Stack) -> Iterator[Violation]:
    """Endpoints scale to zero by their own setting, or by a target of Application Auto Scaling."""
    if any(
        one.props.get("serviceNamespace") == "sagemaker" and one.props.get("minCapacity") == 0
        for one in stack.all(_TARGET)
    ):
        return
    for path, variant in _variants(endpoint):
        if not facts.gpu_type(str(variant.get("instanceType")).removeprefix("ml.")):
            continue
        scaling = variant.get("managedInstanceScaling") or {}
        if scaling.get("minInstanceCount") != 0 and variant.get("initialInstanceCount") != 0:
            yield Violation(
                "its instances always run, and nothing stops them", f"{path}.initialInstanceCount"
            )
