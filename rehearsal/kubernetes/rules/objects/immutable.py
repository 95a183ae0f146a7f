"""Fields that cannot be changed in an object that exists: the update is refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Rule, Violation
from rehearsal.kubernetes.diffs import normalized
from rehearsal.kubernetes.kinds import ObjectKind
from rehearsal.kubernetes.rules.accessors import absent, at, mapping, unsure
from rehearsal.kubernetes.rules.book import (
    BOOK,
    CLAIM,
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    QUOTA,
    REPLICA_SET,
    SECRET,
    SERVICE,
    STATEFUL_SET,
    VOLUME,
    ClusterView,
    existing,
)
from rehearsal.kubernetes.rules.objects.access import BINDING, CLUSTER_BINDING
from rehearsal.kubernetes.rules.objects.custom import DEFINITION
from rehearsal.kubernetes.rules.objects.kueue import CHECK, LOCAL_QUEUE, TOPOLOGY
from rehearsal.kubernetes.rules.objects.storage import CLAIM_FIXED, CLASS, SOURCES
from rehearsal.kubernetes.rules.pods.scheduling import PRIORITY_CLASS
from rehearsal.kubernetes.rules.violations import IMMUTABLE, forbidden, invalid

_VALIDATION = "kubernetes/kubernetes pkg/apis/{}/validation/{}.go"
# Defaults of the API server.
_DEFAULTS = {
    "preemptionPolicy": "PreemptLowerPriority",
    "reclaimPolicy": "Delete",
    "spec.completionMode": "NonIndexed",
    "spec.podManagementPolicy": "OrderedReady",
    "spec.volumeMode": "Filesystem",
    "type": "Opaque",
    "volumeBindingMode": "Immediate",
}
# Fields that an update may omit.
_KEPT = ("spec.clusterIP", "spec.clusterQueue")
_DEVICE_CLAIM = "kubernetes:resource.k8s.io/v1:ResourceClaim"
_DEVICE_TEMPLATE = f"{_DEVICE_CLAIM}Template"
_KUEUE = "kubernetes-sigs/kueue apis/kueue/v1beta2/{}_types.go (v0.19.2)"


@dataclass(frozen=True)
class Fixed:
    """Immutable paths of some types; `detail` is the detail of a Forbidden error."""

    id: str
    types: tuple[str, ...]
    paths: tuple[str, ...]
    source: str
    detail: str = ""


_ROWS = (
    Fixed(
        "K8S-IMM-001",
        (DEPLOYMENT, REPLICA_SET, DAEMON_SET),
        ("spec.selector",),
        "kubernetes/client-go issue 508 (the selectors of apps/v1 are immutable)",
    ),
    Fixed(
        "K8S-IMM-002",
        (STATEFUL_SET,),
        ("spec.selector", "spec.serviceName", "spec.podManagementPolicy", "spec.volumeClaimTemplates"),
        _VALIDATION.format("apps", "validation"),
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', "
        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
    ),
    Fixed(
        "K8S-IMM-003",
        (JOB,),
        (
            "spec.selector",
            "spec.template",
            "spec.completionMode",
            "spec.podFailurePolicy",
            "spec.backoffLimitPerIndex",
            "spec.managedBy",
            "spec.successPolicy",
        ),
        _VALIDATION.format("batch", "validation"),
    ),
    Fixed("K8S-IMM-004", (SERVICE,), ("spec.clusterIP",), _VALIDATION.format("core", "validation")),
    Fixed(
        "K8S-IMM-005",
        (CLAIM,),
        ("spec.accessModes", "spec.storageClassName", "spec.volumeName", "spec.selector", "spec.volumeMode"),
        _VALIDATION.format("core", "validation"),
        CLAIM_FIXED,
    ),
    Fixed(
        "K8S-IMM-006",
        (VOLUME,),
        tuple(f"spec.{source}" for source in SOURCES),
        _VALIDATION.format("core", "validation"),
        "spec.persistentvolumesource is immutable after creation",
    ),
    Fixed(
        "K8S-IMM-007",
        (CLASS,),
        ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
        _VALIDATION.format("storage", "validation"),
        "updates to {path} are forbidden.",
    ),
    Fixed(
        "K8S-IMM-008",
        (PRIORITY_CLASS,),
        ("value", "preemptionPolicy"),
        _VALIDATION.format("scheduling", "validation"),
        "may not be changed in an update.",
    ),
    Fixed("K8S-IMM-009", (BINDING, CLUSTER_BINDING), ("roleRef",), _VALIDATION.format("rbac", "validation")),
    Fixed("K8S-IMM-010", (SECRET,), ("type",), _VALIDATION.format("core", "validation")),
    Fixed("K8S-IMM-011", (QUOTA,), ("spec.scopes",), _VALIDATION.format("core", "validation")),
    Fixed("K8S-IMM-012", (LOCAL_QUEUE,), ("spec.clusterQueue",), _KUEUE.format("localqueue")),
    Fixed("K8S-IMM-013", (TOPOLOGY,), ("spec.levels",), _KUEUE.format("topology")),
    Fixed("K8S-IMM-014", (CHECK,), ("spec.controllerName",), _KUEUE.format("admissioncheck")),
    Fixed(
        "K8S-IMM-016",
        (DEFINITION,),
        ("spec.group", "spec.names.plural", "spec.names.kind", "spec.scope"),
        "kubernetes/kubernetes staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/"
        "validation.go",
    ),
    Fixed(
        "K8S-IMM-017",
        (_DEVICE_CLAIM, _DEVICE_TEMPLATE),
        ("spec",),
        _VALIDATION.format("resource", "validation"),
    ),
)


def _register(row: Fixed) -> None:
    def around(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
        before = existing(world, inputs)
        for path in row.paths if before else ():
            old, new = at(before.inputs if before else None, path), at(inputs, path)
            defaulted = before is not None and new == at(before.outputs, path)
            if unsure(new) or defaulted or _same(path, old, new):
                continue
            if row.detail:
                yield forbidden(path, row.detail.format(path=path))
            else:
                yield invalid(path, new, IMMUTABLE)

    kinds = ", ".join(token.rpartition(":")[2] for token in row.types)
    summary = f"{kinds}: {', '.join(row.paths)} cannot be changed."
    BOOK.add(Rule(row.id, row.types, summary, row.source, around=around))


def _same(path: str, old: Any, new: Any) -> bool:
    if absent(new) and (absent(old) or path in _KEPT):
        return True
    if path == "spec.podFailurePolicy":
        return bool(_filled(old) == _filled(new))
    default = _DEFAULTS.get(path)
    return bool((default if old is None else old) == (default if new is None else new))


def _filled(policy: Any) -> Any:
    """A pod failure policy with the default status of each condition.

    Source: kubernetes/kubernetes pkg/apis/batch/v1/defaults.go
    (SetDefaults_PodFailurePolicyOnPodConditionsPattern).
    """
    if isinstance(policy, list):
        return [_filled(item) for item in policy]
    if not isinstance(policy, dict):
        return policy
    filled = {name: _filled(item) for name, item in policy.items()}
    for condition in filled.get("onPodConditions") or ():
        if isinstance(condition, dict) and not condition.get("status"):
            condition["status"] = "True"
    return filled


for _row in _ROWS:
    _register(_row)


@BOOK.rule_around(
    "K8S-IMM-015", CONFIG_MAP, SECRET, source="kubernetes.io/docs/concepts/configuration/configmap"
)
def _sealed(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """An object marked immutable cannot change, and stays marked."""
    before = existing(world, inputs)
    if before is None or before.inputs.get("immutable") is not True:
        return
    if inputs.get("immutable") not in (True, UNKNOWN):
        yield forbidden("immutable", "field is immutable when `immutable` is set")
    if unsure([inputs.get(key) for key in ("data", "binaryData", "stringData")]):
        return
    kind = ObjectKind("", "v1", str(inputs["kind"]))
    old, new = normalized(kind, before.inputs), normalized(kind, inputs)
    for key in ("data", "binaryData"):
        if mapping(new.get(key)) != mapping(old.get(key)):
            yield forbidden(key, "field is immutable when `immutable` is set")
