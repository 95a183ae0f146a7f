"""Roles, bindings, service accounts and their tokens."""

from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import absent, at, mapping, name, namespace, rows, text
from rehearsal.kubernetes.rules.book import BOOK, CORE, POD, SECRET, ClusterView
from rehearsal.kubernetes.rules.violations import invalid, required, unsupported

_SOURCE = "kubernetes/kubernetes pkg/apis/rbac/validation/validation.go"
_GROUP = "rbac.authorization.k8s.io"
ROLE, CLUSTER_ROLE = f"kubernetes:{_GROUP}/v1:Role", f"kubernetes:{_GROUP}/v1:ClusterRole"
BINDING, CLUSTER_BINDING = f"kubernetes:{_GROUP}/v1:RoleBinding", f"kubernetes:{_GROUP}/v1:ClusterRoleBinding"
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - the type of a Secret
_ACCOUNT = "kubernetes.io/service-account.name"


@BOOK.rule("K8S-RBAC-001", BINDING, CLUSTER_BINDING, source=_SOURCE)
def _role(inputs: Properties) -> Iterator[Violation]:
    """A binding refers to a role; one for the whole cluster to a ClusterRole."""
    role = mapping(inputs.get("roleRef"))
    kinds = ("ClusterRole",) if inputs["kind"] == "ClusterRoleBinding" else ("Role", "ClusterRole")
    if not role:
        return
    if role.get("apiGroup") not in (None, "", _GROUP, UNKNOWN):
        yield unsupported("roleRef.apiGroup", role.get("apiGroup") or "", (_GROUP,))
    if role.get("kind") not in (*kinds, UNKNOWN):
        yield unsupported("roleRef.kind", role.get("kind") or "", kinds)
    if absent(role.get("name")):
        yield required("roleRef.name")


@BOOK.rule("K8S-RBAC-002", BINDING, CLUSTER_BINDING, source=_SOURCE)
def _subjects(inputs: Properties) -> Iterator[Violation]:
    """A binding's subjects are service accounts, users and groups with full names."""
    kinds = ("ServiceAccount", "User", "Group")
    for index, subject in rows(inputs.get("subjects")):
        path, kind, group = f"subjects[{index}]", subject.get("kind"), subject.get("apiGroup")
        if absent(subject.get("name")):
            yield required(f"{path}.name")
        own = text(subject.get("name"))
        if kind == "ServiceAccount" and own and (wrong := grammar.subdomain(own)):
            yield invalid(f"{path}.name", own, wrong)
        if kind not in (*kinds, UNKNOWN):
            yield unsupported(f"{path}.kind", kind or "", kinds)
        if kind == "ServiceAccount" and group not in (None, "", UNKNOWN):
            yield unsupported(f"{path}.apiGroup", group, ("",))
        if kind in ("User", "Group") and group not in (None, "", _GROUP, UNKNOWN):
            yield unsupported(f"{path}.apiGroup", group, (_GROUP,))
        wide = inputs["kind"] == "ClusterRoleBinding"
        if kind == "ServiceAccount" and wide and absent(subject.get("namespace")):
            yield required(f"{path}.namespace")


@BOOK.rule("K8S-RBAC-003", ROLE, CLUSTER_ROLE, source=_SOURCE)
def _rules(inputs: Properties) -> Iterator[Violation]:
    """A rule of a role has verbs, and is about resources of API groups or about URLs, not both."""
    for index, rule in rows(inputs.get("rules")):
        path, urls = f"rules[{index}]", rule.get("nonResourceURLs")
        if absent(rule.get("verbs")):
            yield required(f"{path}.verbs", "verbs must contain at least one value")
        if not absent(urls):
            if inputs["kind"] == "Role":
                yield invalid(
                    f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs"
                )
            if not all(absent(rule.get(key)) for key in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid(f"{path}.nonResourceURLs", urls, detail)
            continue
        if absent(rule.get("apiGroups")):
            yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
        if absent(rule.get("resources")):
            yield required(f"{path}.resources", "resource rules must supply at least one resource")


@BOOK.rule("K8S-SA-001", SECRET, source=CORE)
def _token(inputs: Properties) -> Iterator[Violation]:
    """A Secret for a service account's token names the account."""
    notes = at(inputs, "metadata.annotations")
    unsaid = notes is not UNKNOWN and absent(mapping(notes).get(_ACCOUNT))
    if inputs.get("type") == _TOKEN and unsaid:
        yield required(f"metadata.annotations[{_ACCOUNT}]")


@BOOK.rule_around(
    "K8S-SA-002", POD, source="kubernetes/kubernetes plugin/pkg/admission/serviceaccount/admission.go"
)
def _account(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """A pod's service account exists; the pods of controllers are tried again until it does."""
    account = text(at(inputs, "spec.serviceAccountName"))
    where = namespace(inputs)
    if account and not world.exists("ServiceAccount", where, account):
        detail = f'error looking up service account {where}/{account}: serviceaccount "{account}" not found'
        message = f'pods "{name(inputs)}" is forbidden: {detail}'
        fix = "Create the ServiceAccount first and depend on it."
        yield Violation("spec.serviceAccountName", message, fix, "Forbidden")
