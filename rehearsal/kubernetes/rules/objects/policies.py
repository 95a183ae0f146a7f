"""Network policies, disruption budgets and admission policies."""

import ipaddress
from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar, selectors
from rehearsal.kubernetes.rules.accessors import Object, absent, at, mapping, rows, text, texts, whole
from rehearsal.kubernetes.rules.book import BOOK
from rehearsal.kubernetes.rules.violations import duplicate, forbidden, invalid, required, unsupported

_NETWORKING = "kubernetes/kubernetes pkg/apis/networking/validation/validation.go"
_POLICY = "kubernetes/kubernetes pkg/apis/policy/validation/validation.go"
_ADMISSION = "kubernetes/kubernetes pkg/apis/admissionregistration/validation/validation.go"
NETWORK_POLICY = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
BUDGET = "kubernetes:policy/v1:PodDisruptionBudget"
ADMISSION_POLICY = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
ADMISSION_BINDING = f"{ADMISSION_POLICY}Binding"
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_ACTIONS = ("Audit", "Deny", "Warn")
_ON_ERRORS = ("Fail", "Ignore")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")


def _directions(inputs: Properties) -> Iterator[tuple[str, str, Object]]:
    """The path of every rule, the name of its peers, and the rule."""
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in rows(at(inputs, f"spec.{direction}")):
            yield f"spec.{direction}[{index}]", peers, rule


@BOOK.rule("K8S-NET-001", NETWORK_POLICY, source=_NETWORKING)
def _peers(inputs: Properties) -> Iterator[Violation]:
    """A peer is selected by labels or by addresses, not by both and not by nothing."""
    for path, key, rule in _directions(inputs):
        for index, peer in rows(rule.get(key)):
            given = [
                name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None
            ]
            if not given:
                yield required(f"{path}.{key}[{index}]", "must specify a peer")
            elif "ipBlock" in given and len(given) > 1:
                yield forbidden(f"{path}.{key}[{index}]", "may not specify both ipBlock and another peer")


@BOOK.rule("K8S-NET-002", NETWORK_POLICY, source=_NETWORKING)
def _ports(inputs: Properties) -> Iterator[Violation]:
    """Ports have a protocol; the end of a range of them does not come before its beginning."""
    for path, _, rule in _directions(inputs):
        for index, row in rows(rule.get("ports")):
            here, first, last = f"{path}.ports[{index}]", whole(row.get("port")), whole(row.get("endPort"))
            if row.get("protocol") not in (None, UNKNOWN, *_PROTOCOLS):
                yield unsupported(f"{here}.protocol", row.get("protocol"), _PROTOCOLS)
            if first is not None and (wrong := grammar.port(first)):
                yield invalid(f"{here}.port", first, wrong)
            if last is None or row.get("port") is UNKNOWN:
                continue
            if first is None:
                problem = "not specified" if row.get("port") is None else "non-numeric"
                yield invalid(f"{here}.endPort", last, f"may not be specified when `port` is {problem}")
            elif last < first:
                yield invalid(f"{here}.endPort", last, "must be greater than or equal to `port`")
            elif wrong := grammar.port(last):
                yield invalid(f"{here}.endPort", last, wrong)


@BOOK.rule("K8S-NET-003", NETWORK_POLICY, source=_NETWORKING)
def _blocks(inputs: Properties) -> Iterator[Violation]:
    """Address blocks are CIDRs, and their exceptions lie inside them."""
    for path, key, rule in _directions(inputs):
        for index, peer in rows(rule.get(key)):
            block = mapping(peer.get("ipBlock"))
            here, outer = f"{path}.{key}[{index}].ipBlock", _network(text(block.get("cidr")))
            if text(block.get("cidr")) is not None and outer is None:
                yield invalid(f"{here}.cidr", block["cidr"], "must be a valid CIDR value, (e.g. 10.9.8.0/24)")
            for place, item in texts(block.get("except")):
                inner = _network(item)
                if inner is None:
                    yield invalid(
                        f"{here}.except[{place}]", item, "must be a valid CIDR value, (e.g. 10.9.8.0/24)"
                    )
                elif outer is not None and not _inside(inner, outer):
                    yield invalid(f"{here}.except[{place}]", item, "must be a strict subset of `cidr`")


@BOOK.rule("K8S-NET-004", NETWORK_POLICY, source=_NETWORKING)
def _directions_named(inputs: Properties) -> Iterator[Violation]:
    """A network policy is about ingress, egress, or both."""
    for index, item in texts(at(inputs, "spec.policyTypes")):
        if item not in ("Ingress", "Egress"):
            yield unsupported(f"spec.policyTypes[{index}]", item, ("Ingress", "Egress"))


@BOOK.rule("K8S-NET-005", NETWORK_POLICY, source=selectors.SOURCE)
def _selected(inputs: Properties) -> Iterator[Violation]:
    """A network policy selects pods and namespaces by labels that there can be."""
    yield from selectors.selector("spec.podSelector", at(inputs, "spec.podSelector"))
    for path, key, rule in _directions(inputs):
        for index, peer in rows(rule.get(key)):
            for kind in ("podSelector", "namespaceSelector"):
                yield from selectors.selector(f"{path}.{key}[{index}].{kind}", peer.get(kind))


@BOOK.rule("K8S-PDB-001", BUDGET, source=_POLICY)
def _one_bound(inputs: Properties) -> Iterator[Violation]:
    """A disruption budget sets minAvailable or maxUnavailable, not both."""
    spec = mapping(inputs.get("spec"))
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield invalid("spec", "", "minAvailable and maxUnavailable cannot be both set")


@BOOK.rule("K8S-PDB-002", BUDGET, source=_POLICY)
def _bounds(inputs: Properties) -> Iterator[Violation]:
    """The bounds of a disruption budget are counts or percentages up to 100%."""
    for key in ("minAvailable", "maxUnavailable"):
        value = at(inputs, f"spec.{key}")
        counts = isinstance(value, int | float | str) and not isinstance(value, bool)
        if counts and (wrong := grammar.count_or_share(value, 100)):
            yield invalid(f"spec.{key}", value, wrong)


@BOOK.rule("K8S-VAP-001", ADMISSION_POLICY, source=_ADMISSION)
def _says_something(inputs: Properties) -> Iterator[Violation]:
    """An admission policy has match constraints, validations or audit annotations, and a failure policy."""
    if absent(at(inputs, "spec.matchConstraints")):
        yield required("spec.matchConstraints")
    elif absent(at(inputs, "spec.matchConstraints.resourceRules")):
        yield required("spec.matchConstraints.resourceRules")
    if all(absent(at(inputs, f"spec.{key}")) for key in ("validations", "auditAnnotations")):
        detail = "validations or auditAnnotations must contain at least one item"
        yield required("spec.validations", detail)
    errors = text(at(inputs, "spec.failurePolicy"))
    if errors not in (None, *_ON_ERRORS):
        yield unsupported("spec.failurePolicy", errors, _ON_ERRORS)


@BOOK.rule("K8S-VAP-004", ADMISSION_POLICY, source=_ADMISSION)
def _matched(inputs: Properties) -> Iterator[Violation]:
    """The match constraints of an admission policy are complete; `*` stands alone."""
    for index, row in rows(at(inputs, "spec.matchConstraints.resourceRules")):
        path = f"spec.matchConstraints.resourceRules[{index}]"
        for key in ("operations", "apiGroups", "apiVersions", "resources"):
            if absent(row.get(key)):
                yield required(f"{path}.{key}")
            own = [word for _, word in texts(row.get(key))]
            if key != "resources" and "*" in own and len(own) > 1:
                yield invalid(f"{path}.{key}", own, f"if '*' is present, must not specify other {key}")
        for key in ("apiVersions", "resources"):
            for place, word in texts(row.get(key)):
                if not word:
                    yield required(f"{path}.{key}[{place}]")
        for place, word in texts(row.get("operations")):
            if word not in _OPERATIONS:
                yield unsupported(f"{path}.operations[{place}]", word, _OPERATIONS)


@BOOK.rule("K8S-VAP-005", ADMISSION_POLICY, source=selectors.SOURCE)
def _where(inputs: Properties) -> Iterator[Violation]:
    """An admission policy selects namespaces and objects by labels that there can be."""
    for kind in ("namespaceSelector", "objectSelector"):
        path = f"spec.matchConstraints.{kind}"
        yield from selectors.selector(path, at(inputs, path))


@BOOK.rule("K8S-VAP-002", ADMISSION_POLICY, source=_ADMISSION)
def _expressions(inputs: Properties) -> Iterator[Violation]:
    """Validations, variables and conditions have expressions, and names where they need them."""
    for group, named in (("validations", False), ("variables", True), ("matchConditions", True)):
        seen: set[str] = set()
        for index, row in rows(at(inputs, f"spec.{group}")):
            path, own, expression = f"spec.{group}[{index}]", text(row.get("name")), row.get("expression")
            if absent(expression) or (isinstance(expression, str) and not expression.strip()):
                yield required(f"{path}.expression", "expression is not specified")
            if named and absent(row.get("name")):
                yield required(f"{path}.name", "name is not specified")
            # The last variable of a name counts.
            elif group == "matchConditions" and own and own in seen:
                yield duplicate(f"{path}.name", own)
            seen.add(own or "")


@BOOK.rule("K8S-VAP-003", ADMISSION_BINDING, source=_ADMISSION)
def _actions(inputs: Properties) -> Iterator[Violation]:
    """A binding names its policy and its actions on a violation; Deny and Warn exclude each other."""
    actions = [action for _, action in texts(at(inputs, "spec.validationActions"))]
    if absent(at(inputs, "spec.policyName")):
        yield required("spec.policyName")
    elif (own := text(at(inputs, "spec.policyName"))) and (wrong := grammar.subdomain(own)):
        yield invalid("spec.policyName", own, wrong)
    if absent(at(inputs, "spec.validationActions")):
        yield required("spec.validationActions", "at least one validation action is required")
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield unsupported(f"spec.validationActions[{index}]", action, _ACTIONS)
    if {"Deny", "Warn"} <= set(actions):
        yield invalid("spec.validationActions", actions, "must not contain both Deny and Warn")


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _network(value: str | None) -> _Network | None:
    try:
        return ipaddress.ip_network(value, strict=False) if value and "/" in value else None
    except ValueError:
        return None


def _inside(inner: _Network, outer: _Network) -> bool:
    longer = inner.version == outer.version and inner.prefixlen > outer.prefixlen
    return longer and inner.network_address in outer
