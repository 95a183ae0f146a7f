"""Resource quotas and limit ranges: their form, and their limits on a namespace's pods.

The API server refuses pods, not the Deployments and Jobs whose controllers create them: those are accepted,
get no pods, and the update that waits for them times out. The rehearsal reports it at once.
"""

from collections.abc import Iterator
from decimal import Decimal

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar, pod_resources
from rehearsal.kubernetes.rules.accessors import (
    Object,
    absent,
    amount,
    at,
    mapping,
    name,
    namespace,
    pod,
    rows,
    text,
    whole,
)
from rehearsal.kubernetes.rules.book import (
    BOOK,
    CORE,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    LIMIT_RANGE,
    POD,
    PODS,
    QUOTA,
    REPLICA_SET,
    STATEFUL_SET,
    ClusterView,
    objects,
)
from rehearsal.kubernetes.rules.violations import NEGATIVE, duplicate, forbidden, invalid, no_pod, required

_USE = "kubernetes/kubernetes staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go"
_EVALUATOR = "kubernetes/kubernetes pkg/quota/v1/evaluator/core/pods.go"
_RANGER = "kubernetes/kubernetes plugin/pkg/admission/limitranger/admission.go"
_LIMIT_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
# Scopes with values; the others exist or not.
_SELECTED = ("PriorityClass", "VolumeAttributesClass")
_SCOPES = (
    "BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "Terminating", *_SELECTED,
)  # fmt: skip
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_COUNTED = (
    "configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets",
    "services", "services.loadbalancers", "services.nodeports", "requests.storage",
)  # fmt: skip
# With a quota of one of these, every container must set requests.
_MUST_SAY = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_LASTING = (POD, DEPLOYMENT, STATEFUL_SET, REPLICA_SET)


@BOOK.rule("K8S-QUOTA-001", QUOTA, source=CORE)
def _hard(inputs: Properties) -> Iterator[Violation]:
    """A quota limits resources that there are quotas for, to amounts that are not negative."""
    standard = {
        *_COMPUTE,
        *_COUNTED,
        *(f"{side}.{key}" for side in ("requests", "limits") for key in _COMPUTE),
    }
    for key, value in mapping(at(inputs, "spec.hard")).items():
        plain, number = str(key), amount(value)
        huge = plain.removeprefix("requests.").startswith("hugepages-")
        if "/" not in plain and plain not in standard and not huge:
            yield invalid(f"spec.hard[{plain}]", plain, "must be a standard resource for quota")
        elif "/" in plain and not plain.startswith("count/") and (wrong := grammar.label_key(plain)):
            yield invalid(f"spec.hard[{plain}]", plain, wrong)
        if number is not None and number < 0:
            yield invalid(f"spec.hard[{plain}]", value, NEGATIVE)


@BOOK.rule("K8S-QUOTA-004", QUOTA, source=CORE)
def _scopes(inputs: Properties) -> Iterator[Violation]:
    """A quota is for scopes that there are, selected by an operator with the values that it takes."""
    path = "spec.scopeSelector.matchExpressions"
    for _, row in rows(at(inputs, path)):
        scope, operator, values = row.get("scopeName"), row.get("operator"), row.get("values")
        if scope not in (*_SCOPES, UNKNOWN):
            yield invalid(f"{path}.scopeName", scope, "unsupported scope")
        elif scope not in (*_SELECTED, UNKNOWN) and operator not in ("Exists", UNKNOWN):
            yield invalid(f"{path}.operator", operator, f"must be 'Exists' when scope is {scope}")
        if operator in ("In", "NotIn") and absent(values):
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield required(f"{path}.values", detail)
        elif operator in ("Exists", "DoesNotExist") and not absent(values):
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield invalid(f"{path}.values", values, detail)
        elif operator not in ("In", "NotIn", "Exists", "DoesNotExist", UNKNOWN):
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")


@BOOK.rule("K8S-LIMIT-001", LIMIT_RANGE, source=CORE)
def _range(inputs: Properties) -> Iterator[Violation]:
    """A limit range has one row a type, whose minimum, defaults and maximum do not contradict each other."""
    seen: set[str] = set()
    for index, row in rows(at(inputs, "spec.limits")):
        path, kind = f"spec.limits[{index}]", text(row.get("type")) or ""
        if row.get("type") is not UNKNOWN and kind not in _LIMIT_TYPES:
            wrong = grammar.label_key(kind)
            if wrong or "/" not in kind:
                detail = wrong or "must be a standard limit type or fully qualified"
                yield invalid(f"{path}.type", kind, detail)
        if kind in seen:
            yield duplicate(f"{path}.type", kind)
        seen.add(kind)
        if kind == "Pod":
            for key in ("default", "defaultRequest"):
                if row.get(key):
                    yield forbidden(f"{path}.{key}", "may not be specified when `type` is 'Pod'")
        yield from _ordered(path, row)


def _ordered(path: str, row: Object) -> Iterator[Violation]:
    sides = ("min", "defaultRequest", "default", "max")
    names = ("min value", "default request value", "default value", "max value")
    for low in range(len(sides)):
        for high in range(low + 1, len(sides)):
            for key, value in mapping(row.get(sides[low])).items():
                least, most = amount(value), amount(mapping(row.get(sides[high])).get(key))
                if least is not None and most is not None and least > most:
                    detail = f"{names[low]} {value} is greater than {names[high]} {pod_resources.show(most)}"
                    yield invalid(f"{path}.{sides[low]}[{key}]", value, detail)


@BOOK.rule_around("K8S-LIMIT-002", *PODS, source=_RANGER)
def _within_range(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """Containers and pods stay between the least and the most that their namespace allows."""
    view = pod(inputs)
    ranges = [record.inputs for record in objects(world, LIMIT_RANGE, namespace(inputs))]
    if view is None or not view.asks or not ranges:
        return
    asked = pod_resources.containers(view, ranges)
    whole_pod = (f"{view.path}.containers", pod_resources.together(asked))
    for limits in ranges:
        for _, row in rows(at(limits, "spec.limits")):
            kind = row.get("type")
            about = {"Container": asked, "Pod": [whole_pod]}.get(str(kind), [])
            for path, one in about:
                for problem in _out_of_range(str(kind), row, one):
                    yield no_pod(inputs, path, problem)


def _out_of_range(kind: str, row: Object, one: pod_resources.ContainerResources) -> Iterator[str]:
    for key, value in mapping(row.get("min")).items():
        least, request = amount(value), one.requests.get(key)
        if least is not None and request is None:
            yield f"minimum {key} usage per {kind} is {value}.  No request is specified"
        elif least is not None and request is not None and request < least:
            yield f"minimum {key} usage per {kind} is {value}, but request is {pod_resources.show(request)}"
    for key, value in mapping(row.get("max")).items():
        most, limit, request = amount(value), one.limits.get(key), one.requests.get(key)
        if most is not None and limit is None:
            yield f"maximum {key} usage per {kind} is {value}.  No limit is specified"
        elif most is not None and limit is not None and limit > most:
            yield f"maximum {key} usage per {kind} is {value}, but limit is {pod_resources.show(limit)}"
        elif most is not None and request is not None and request > most:
            yield f"maximum {key} usage per {kind} is {value}, but request is {pod_resources.show(request)}"


@BOOK.rule_around("K8S-QUOTA-002", *PODS, source=_EVALUATOR)
def _says_what_it_uses(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """Every container sets requests or limits where cpu or memory has a quota."""
    view = pod(inputs)
    if view is None or not view.asks:
        return
    for quota in _quotas(world, namespace(inputs)):
        ranges = [record.inputs for record in objects(world, LIMIT_RANGE, namespace(inputs))]
        missing: dict[str, list[str]] = {}
        for _, one in pod_resources.containers(view, ranges):
            usage = pod_resources.charged(one)
            for key in sorted(set(mapping(at(quota, "spec.hard"))) & set(_MUST_SAY) - set(usage)):
                missing.setdefault(key, []).append(one.name)
        if missing:
            detail = "; ".join(
                f"{key} for: {','.join(sorted(names))}" for key, names in sorted(missing.items())
            )
            yield no_pod(
                inputs, f"{view.path}.containers", f"failed quota: {name(quota)}: must specify {detail}"
            )


@BOOK.rule_around(
    "K8S-QUOTA-003", *(token for token in PODS if token not in (CRON_JOB, DAEMON_SET)), source=_USE
)
def _within_quota(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """The pods of a namespace use no more than its quotas: all replicas, but one pod at a time of a Job."""
    view, where = pod(inputs), namespace(inputs)
    quotas = list(_quotas(world, where)) if view else []
    if view is None or not view.asks or not quotas:
        return
    ranges = [record.inputs for record in objects(world, LIMIT_RANGE, where)]
    one = pod_resources.charged(pod_resources.together(pod_resources.containers(view, ranges)))
    count = _count(inputs)
    asked = {key: value * count for key, value in one.items()}
    used = _used(world, where, ranges, without=(str(inputs["kind"]), name(inputs)))
    for quota in quotas:
        hard = {key: amount(value) for key, value in mapping(at(quota, "spec.hard")).items()}
        over = sorted(
            key
            for key, most in hard.items()
            if most is not None and asked.get(key) and used.get(key, Decimal(0)) + asked[key] > most
        )
        if over:
            shown = (
                ",".join(f"{key}={pod_resources.show(side.get(key) or Decimal(0))}" for key in over)
                for side in (asked, used, hard)
            )
            requested, taken, limited = shown
            detail = (
                f"exceeded quota: {name(quota)}, requested: {requested}, used: {taken}, limited: {limited}"
            )
            yield no_pod(inputs, f"{view.path}.containers", detail)


def _quotas(world: ClusterView, where: str) -> Iterator[Properties]:
    """The quotas of a namespace; those for some pods only (scopes) are not enforced here."""
    for record in objects(world, QUOTA, where):
        if not at(record.inputs, "spec.scopes") and not at(record.inputs, "spec.scopeSelector"):
            yield record.inputs


def _used(
    world: ClusterView, where: str, ranges: list[Properties], without: tuple[str, str | None]
) -> dict[str, Decimal]:
    """Usage by the lasting pods of a namespace; those of Jobs end by themselves."""
    total: dict[str, Decimal] = {}
    for token in _LASTING:
        for record in objects(world, token, where):
            view = pod(record.inputs)
            if view is None or (token.rpartition(":")[2], record.name) == without:
                continue
            for key, value in pod_resources.charged(
                pod_resources.together(pod_resources.containers(view, ranges))
            ).items():
                total[key] = total.get(key, Decimal(0)) + value * _count(
                    record.inputs | {"kind": record.type}
                )
    return total


def _count(inputs: Properties) -> int:
    if inputs.get("kind") in ("Pod", "Job") or str(inputs.get("kind")).endswith((":Pod", f":{JOB}")):
        return 1
    replicas = whole(at(inputs, "spec.replicas"))
    return 1 if replicas is None else replicas
