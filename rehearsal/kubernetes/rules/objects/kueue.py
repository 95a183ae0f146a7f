"""Kueue's own rules, those of its webhooks and of its definitions' expressions (API v1beta2, v0.19.2)."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import (
    Object,
    absent,
    amount,
    at,
    mapping,
    rows,
    text,
    texts,
    unsure,
)
from rehearsal.kubernetes.rules.book import BOOK, ClusterView, existing
from rehearsal.kubernetes.rules.pods.pods import toleration
from rehearsal.kubernetes.rules.violations import NEGATIVE, duplicate, forbidden, invalid, unsupported

_API = "kubernetes:kueue.x-k8s.io/v1beta2:"
QUEUE, COHORT, LOCAL_QUEUE = f"{_API}ClusterQueue", f"{_API}Cohort", f"{_API}LocalQueue"
FLAVOR, TOPOLOGY, CHECK = f"{_API}ResourceFlavor", f"{_API}Topology", f"{_API}AdmissionCheck"
_WEBHOOK = "kubernetes-sigs/kueue pkg/webhooks/{}_webhook.go (v0.19.2)"
_TYPES = "kubernetes-sigs/kueue apis/kueue/v1beta2/{}_types.go (v0.19.2)"
_QUEUES = _WEBHOOK.format("clusterqueue")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_HOST = "kubernetes.io/hostname"
_MOST, _MOST_PAIRS = 256, 512
_NANO = Decimal("1e-9")


def _groups(inputs: Properties) -> Iterator[tuple[str, Object]]:
    for index, group in rows(at(inputs, "spec.resourceGroups")):
        yield f"spec.resourceGroups[{index}]", group


def _quotas(inputs: Properties) -> Iterator[tuple[str, Object]]:
    """Every row of quota of every flavor, with its path."""
    for path, group in _groups(inputs):
        for number, flavor in rows(group.get("flavors")):
            for index, row in rows(flavor.get("resources")):
                yield f"{path}.flavors[{number}].resources[{index}]", row


@BOOK.rule("K8S-KUEUE-001", QUEUE, COHORT, source=_QUEUES)
def _resources_once(inputs: Properties) -> Iterator[Violation]:
    """A resource is in one group only, and has the name of one."""
    seen: set[str] = set()
    for path, group in _groups(inputs):
        for index, resource in texts(group.get("coveredResources")):
            if wrong := grammar.label_key(resource):
                yield invalid(f"{path}.coveredResources[{index}]", resource, wrong)
            if resource in seen:
                yield duplicate(f"{path}.coveredResources[{index}]", resource)
            seen.add(resource)


@BOOK.rule("K8S-KUEUE-002", QUEUE, COHORT, source=_QUEUES)
def _flavors_once(inputs: Properties) -> Iterator[Violation]:
    """A flavor is in one group only, and once."""
    seen: set[str] = set()
    for path, group in _groups(inputs):
        for index, own in _named_again(group.get("flavors"), seen):
            yield duplicate(f"{path}.flavors[{index}].name", own)


def _named_again(found: Any, seen: set[str]) -> Iterator[tuple[int, str]]:
    """Index and name of items whose name was seen before; adds the names to `seen`."""
    for index, row in rows(found):
        name = text(row.get("name"))
        if name is not None and name in seen:
            yield index, name
        seen.add(name or "")


@BOOK.rule("K8S-KUEUE-003", QUEUE, COHORT, source=_QUEUES)
def _covered(inputs: Properties) -> Iterator[Violation]:
    """Every flavor has a quota of every covered resource, in the order in which they are covered."""
    for path, group in _groups(inputs):
        covered = group.get("coveredResources")
        for number, flavor in rows(group.get("flavors")):
            found = flavor.get("resources")
            if unsure(covered) or not isinstance(covered, list) or not isinstance(found, list):
                continue
            # Checked before the webhook: the items of this list are identified by name.
            if again := list(_named_again(found, set())):
                for index, own in again:
                    yield duplicate(f"{path}.flavors[{number}].resources[{index}]", {"name": own})
                continue
            if len(found) != len(covered):
                detail = "flavors must have the same number of resources as the coveredResources"
                yield invalid(path, flavor.get("name"), detail)
            for index, row in rows(found[: len(covered)]):
                if isinstance(covered[index], str) and row.get("name") not in (covered[index], UNKNOWN):
                    where = f"{path}.flavors[{number}].resources[{index}].name"
                    yield invalid(where, row.get("name"), "must match the name in coveredResources")


@BOOK.rule("K8S-KUEUE-004", QUEUE, COHORT, source=_QUEUES)
def _limits_need_cohort(inputs: Properties) -> Iterator[Violation]:
    """Borrowing and lending limits need a cohort."""
    key, owner = ("parentName", "parent") if inputs["kind"] == "Cohort" else ("cohortName", "cohort")
    if not absent(at(inputs, f"spec.{key}")):
        return
    for path, row in _quotas(inputs):
        for limit in ("borrowingLimit", "lendingLimit"):
            if row.get(limit) is not None:
                yield invalid(f"{path}.{limit}", row[limit], f"must be nil when {owner} is empty")


@BOOK.rule("K8S-KUEUE-005", QUEUE, source=_QUEUES)
def _lends_its_own(inputs: Properties) -> Iterator[Violation]:
    """A queue lends no more than it has."""
    for path, row in _quotas(inputs):
        lent, own = amount(row.get("lendingLimit")), amount(row.get("nominalQuota"))
        if lent is not None and own is not None and lent > own:
            yield invalid(
                f"{path}.lendingLimit", row["lendingLimit"], "must be less than or equal to the nominalQuota"
            )


@BOOK.rule("K8S-KUEUE-006", QUEUE, COHORT, source=_QUEUES)
def _not_negative(inputs: Properties) -> Iterator[Violation]:
    """Quotas and limits are not negative."""
    for path, row in _quotas(inputs):
        for key in ("nominalQuota", "borrowingLimit", "lendingLimit"):
            number = amount(row.get(key))
            if number is not None and number < 0:
                yield invalid(f"{path}.{key}", row[key], NEGATIVE)


@BOOK.rule("K8S-KUEUE-007", QUEUE, source=_QUEUES)
def _preemption(inputs: Properties) -> Iterator[Violation]:
    """A queue that reclaims nothing from its cohort cannot preempt there while it borrows."""
    preemption = mapping(at(inputs, "spec.preemption"))
    policy = at(preemption, "borrowWithinCohort.policy")
    never = preemption.get("reclaimWithinCohort") in (None, "Never")
    if never and policy not in (None, "Never", UNKNOWN):
        yield invalid(
            "spec.preemption", policy, "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"
        )


@BOOK.rule("K8S-KUEUE-008", QUEUE, source=_QUEUES)
def _fungibility(inputs: Properties) -> Iterator[Violation]:
    """A preference among flavors needs that the next flavor is tried at all."""
    found = mapping(at(inputs, "spec.flavorFungibility"))
    tries = ("TryNextFlavor", UNKNOWN)
    if found.get("preference") is not None and not (
        found.get("whenCanBorrow") in tries and found.get("whenCanPreempt", "TryNextFlavor") in tries
    ):
        detail = "requires both whenCanBorrow and whenCanPreempt to be TryNextFlavor"
        yield invalid("spec.flavorFungibility.preference", found["preference"], detail)


@BOOK.rule("K8S-KUEUE-009", QUEUE, COHORT, source="kubernetes-sigs/kueue pkg/webhooks/common.go (v0.19.2)")
def _weight(inputs: Properties) -> Iterator[Violation]:
    """A weight is zero, or large enough to count."""
    value = at(inputs, "spec.fairSharing.weight")
    number = amount(value)
    if number is not None and number < 0:
        yield invalid("spec.fairSharing", value, NEGATIVE)
    elif number and number <= _NANO:
        yield invalid("spec.fairSharing", value, "When not 0, weight must be > 10e-9")


@BOOK.rule("K8S-KUEUE-010", QUEUE, source=_QUEUES)
def _not_too_many(inputs: Properties) -> Iterator[Violation]:
    """A queue has at most 256 flavors and resources, and a group at most 512 quotas."""
    groups = list(_groups(inputs))
    for key, title in (("flavors", "flavors"), ("coveredResources", "covered resources")):
        total = sum(len(group.get(key) or ()) for _, group in groups if group.get(key) is not UNKNOWN)
        if total > _MOST:
            detail = f"total number of {title} across all resourceGroups must be ≤ {_MOST}, got {total}"
            yield invalid("spec.resourceGroups", total, detail)
    for path, group in groups:
        pairs = sum(len(list(rows(flavor.get("resources")))) for _, flavor in rows(group.get("flavors")))
        if pairs > _MOST_PAIRS:
            prefix = "number of flavor-resource combinations in a resourceGroup must be"
            detail = f"{prefix} ≤ {_MOST_PAIRS}, got {pairs}"
            yield invalid(path, pairs, detail)


@BOOK.rule("K8S-KUEUE-011", QUEUE, source=_QUEUES)
def _checks_on_flavors(inputs: Properties) -> Iterator[Violation]:
    """An admission check is for flavors that the queue has."""
    known = {text(flavor.get("name")) for _, group in _groups(inputs)
             for _, flavor in rows(group.get("flavors"))}  # fmt: skip
    if any(grammar.subdomain(name) for name in known if name):
        return  # the definition refuses such a name before the webhook
    for index, check in rows(at(inputs, "spec.admissionChecksStrategy.admissionChecks")):
        for place, flavor in texts(check.get("onFlavors")):
            if flavor not in known and not unsure(at(inputs, "spec.resourceGroups")):
                path = f"spec.admissionChecksStrategy.admissionChecks[{index}].onFlavors[{place}]"
                yield unsupported(path, flavor, sorted(str(name) for name in known))


@BOOK.rule("K8S-KUEUE-012", FLAVOR, source=_WEBHOOK.format("resourceflavor"))
def _flavor_taints(inputs: Properties) -> Iterator[Violation]:
    """A flavor's taints have label keys and values, one of three effects, and are there once."""
    seen: set[tuple[str | None, str | None]] = set()
    for index, taint in rows(at(inputs, "spec.nodeTaints")):
        path, key, effect = f"spec.nodeTaints[{index}]", text(taint.get("key")), taint.get("effect")
        if key is not None and (wrong := grammar.label_key(key)):
            yield invalid(f"{path}.key", key, wrong)
        if wrong := grammar.label_value(text(taint.get("value")) or ""):
            yield invalid(f"{path}.value", taint["value"], wrong)
        if effect not in (*_EFFECTS, UNKNOWN):
            yield unsupported(f"{path}.effect", effect or "", _EFFECTS)
        one = (key, text(effect))
        if None not in one and one in seen:
            yield duplicate(path, {"key": key, "effect": effect})
        seen.add(one)


@BOOK.rule("K8S-KUEUE-013", FLAVOR, source=_TYPES.format("resourceflavor"))
def _flavor_tolerations(inputs: Properties) -> Iterator[Violation]:
    """A flavor's tolerations are ones that a pod could have."""
    for index, row in rows(at(inputs, "spec.tolerations")):
        yield from toleration(f"spec.tolerations[{index}]", row)
        if row.get("effect") == "":
            yield unsupported(f"spec.tolerations[{index}].effect", "", _EFFECTS)


@BOOK.rule("K8S-KUEUE-014", FLAVOR, source=_TYPES.format("resourceflavor"))
def _flavor_labels(inputs: Properties) -> Iterator[Violation]:
    """A flavor's node labels are labels, and a flavor with a topology has some."""
    labels = at(inputs, "spec.nodeLabels")
    for key, value in mapping(labels).items():
        if wrong := grammar.label_key(str(key)) or grammar.label_value(text(value) or ""):
            yield invalid("spec.nodeLabels", key, wrong)
    if not absent(at(inputs, "spec.topologyName")) and absent(labels):
        yield invalid("spec", "", "at least one nodeLabel is required when topology is set")


@BOOK.rule_around("K8S-KUEUE-015", FLAVOR, source=_TYPES.format("resourceflavor"))
def _flavor_fixed(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """A flavor with a topology keeps it, and its labels and tolerations."""
    before = existing(world, inputs)
    if before is None or absent(at(before.inputs, "spec.topologyName")):
        return
    for key in ("nodeLabels", "tolerations", "topologyName"):
        old, new = at(before.inputs, f"spec.{key}"), at(inputs, f"spec.{key}")
        if new != old and not unsure(new):
            yield forbidden(f"spec.{key}", f"{key} is immutable when topologyName is set")


@BOOK.rule("K8S-KUEUE-016", TOPOLOGY, source=_TYPES.format("topology"))
def _levels(inputs: Properties) -> Iterator[Violation]:
    """The levels of a topology differ, and the host is the lowest."""
    labels = [text(row.get("nodeLabel")) for _, row in rows(at(inputs, "spec.levels"))]
    known = [label for label in labels if label is not None]
    if len(set(known)) < len(known):
        yield invalid("spec.levels", known, "must be unique")
    if _HOST in labels[:-1]:
        detail = f"the {_HOST} label can only be used at the lowest level of topology"
        yield invalid("spec.levels", known, detail)
