"""Number of accelerators: maximum, minimum, and idle ones."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules.accelerators import POOLS, EksPool, GkePool, Pool, accelerated, all_pools, pools_of
from policies.rules.environment import is_production
from policies.rules.pools import is_prepaid
from policies.stack import Stack

_ALARM, _ALERTS = "aws:cloudwatch/metricAlarm:MetricAlarm", "gcp:monitoring/alertPolicy:AlertPolicy"
_RULES = "kubernetes:monitoring.coreos.com/v1:PrometheusRule"
_RELEASE, _DEPLOYMENT = "kubernetes:helm.sh/v3:Release", "kubernetes:apps/v1:Deployment"
# Names of utilization metrics: NVIDIA's DCGM exporter, CloudWatch's agent with nvidia-smi, Container
# Insights (node_gpu_utilization), SageMaker (GPUUtilization), GKE (accelerator/duty_cycle), Neuron.
_MEASURES = (
    *("dcgm_fi_dev_gpu_util", "dcgm_fi_prof_gr_engine_active", "dcgm_fi_prof_sm_active"),
    *(
        "utilization_gpu",
        "gpu_utilization",
        "gpuutilization",
        "accelerator/duty_cycle",
        "neuroncore_utilization",
    ),
)


@CATALOG.rule_of_stack(
    "MLS-GPU-02",
    "high",
    POOLS,
    "A mistake can start everything that autoscaling allows; nodes beyond the quotas never start.",
    "Lower the maximum size of a pool, or raise max_accelerators; ask AWS for a larger quota.",
)
def no_more_than_the_cap(stack: Stack) -> Iterator[Violation]:
    """All pools at maximum size have no more accelerators than the cap, and are within the quotas."""
    pools = [pool for pool in stack.once(all_pools) if pool.devices()]
    if not pools:
        raise NotApplicableError("no pool has accelerators")
    counted = [(pool, pool.most().number, _per_machine(pool)) for pool in pools]
    total, most = sum(nodes * each for _, nodes, each in counted), stack.settings.max_accelerators
    if total > most:
        parts = ", ".join(f"{pool.name} {nodes} x {each}" for pool, nodes, each in counted)
        yield Violation(f"{total} accelerators at maximum size, {most} are allowed: {parts}")
    yield from _over_quota(pools, stack)


def _per_machine(pool: Pool) -> int:
    """The maximum of several machine types; on GKE the sum of several accelerators of a machine."""
    counts = [devices.count for devices in pool.devices()]
    return sum(counts) if isinstance(pool, GkePool) else max(counts)


def _over_quota(pools: Iterable[Pool], stack: Stack) -> Iterator[Violation]:
    from infra.catalog.aws import facts, quotas  # noqa: PLC0415 - longer to load than all rules
    from infra.catalog.demand import Demand  # noqa: PLC0415

    allowed = stack.settings.quotas
    demands = []
    for pool in pools if allowed else ():
        if isinstance(pool, EksPool):
            given = pool.resource.props.get("capacityType")
            market = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity_block"}.get(given or "", "on_demand")
            for machine in {name for _, name in pool.machines()}:
                key, each = quotas.vcpu_key(machine, market), facts.vcpus(machine)
                if key is not None and key in allowed and each is not None:
                    demands.append(Demand(key, each * pool.most().number, pool.name))
    for short in quotas.exceeded(demands, allowed):
        yield Violation(str(short))


@CATALOG.rule_around(
    "MLS-GPU-04",
    "medium",
    POOLS,
    "A node that always runs is billed on nights and weekends without training.",
    "Set the minimum size to 0 and let an autoscaler start nodes for jobs.",
)
def pools_shrink_to_zero(holder: Resource, stack: Stack) -> Iterator[Violation]:
    """Outside of production, pools with accelerators shrink to zero."""
    pools = accelerated(pools_of(holder, stack))
    if is_production(holder, stack, otherwise=False):
        raise NotApplicableError("its tags mark it as production")
    if isinstance(pools[0], EksPool) and is_prepaid(holder, stack):
        raise NotApplicableError("its Capacity Block is paid in advance, used or not")
    for pool in pools:
        least = pool.least()
        if least.number > 0:
            yield Violation(f"{least.number} nodes with accelerators always run", least.path)


@CATALOG.rule_around(
    "MLS-GPU-05",
    "high",
    POOLS,
    "Idle machines with accelerators are the largest waste of a training stack.",
    "Let an autoscaler shrink the pool to 0, or add an alarm on low utilization of its GPUs.",
)
def idle_accelerators_are_noticed(holder: Resource, stack: Stack) -> Iterator[Violation]:
    """Idle nodes with accelerators are removed, or an alarm notifies of them."""
    for pool in accelerated(pools_of(holder, stack)):
        least = pool.least()
        if (least.number or not _shrinks(pool)) and not stack.once(_has_alarm):
            why = f"{least.number} nodes always run" if least.number else "no autoscaler ends idle nodes"
            yield Violation(f"{why}, and no alarm watches the utilization of its accelerators", least.path)


def _shrinks(pool: Pool) -> bool:
    if isinstance(pool, GkePool):
        return bool(pool.props.get("autoscaling"))
    return pool.stack.once(_ends_nodes)


def _ends_nodes(stack: Stack) -> bool:
    for release in stack.all(_RELEASE):
        if "cluster-autoscaler" in str(release.props.get("chart")):
            arguments = (release.props.get("values") or {}).get("extraArgs") or {}
            return str(arguments.get("scale-down-enabled", True)).lower() != "false"
    # Charts that Pulumi renders itself, and plain manifests.
    return any("cluster-autoscaler" in str(_name(one)) for one in stack.all(_DEPLOYMENT))


def _name(one: Resource) -> Any:
    return (one.props.get("metadata") or {}).get("name")


def _has_alarm(stack: Stack) -> bool:
    unknown: UndeterminedError | None = None
    for measures in _watched(stack):
        try:
            if _measures_gpus(measures):
                return True
        except UndeterminedError as error:
            # Another alarm may decide.
            unknown = unknown or error
    if unknown:
        raise unknown
    return False


def _watched(stack: Stack) -> Iterator[Any]:
    for alarm in stack.all(_ALARM):
        if alarm.props.get("alarmActions") and alarm.props.get("actionsEnabled") is not False:
            yield [alarm.props.get("metricName"), alarm.props.get("metricQueries")]
    for policy in stack.all(_ALERTS):
        if policy.props.get("enabled") is not False:
            yield policy.props.get("conditions")
    for rules in stack.all(_RULES):
        yield rules.props.get("spec")


def _measures_gpus(value: Any) -> bool:
    if is_unknown(value):
        return bool(value)
    text = json.dumps(value).lower()
    return any(measure in text for measure in _MEASURES)
