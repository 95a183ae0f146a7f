"""Services."""

import ipaddress
from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import Object, absent, at, mapping, rows, text, texts, whole
from rehearsal.kubernetes.rules.book import BOOK, CORE, SERVICE
from rehearsal.kubernetes.rules.violations import duplicate, forbidden, invalid, required, unsupported

# MaxClientIPServiceAffinitySeconds in pkg/apis/core/types.go.
_LONGEST_AFFINITY_S = 86400
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
# The default of the API server's --service-node-port-range, which cannot be changed on EKS and GKE.
_NODE_PORTS = range(30000, 32768)


def _ports(inputs: Properties) -> Iterator[tuple[str, Object]]:
    for index, row in rows(at(inputs, "spec.ports")):
        yield f"spec.ports[{index}]", row


def _type(inputs: Properties) -> str | None:
    """The Service's type; None while it is not known."""
    found = at(inputs, "spec.type")
    return None if found is UNKNOWN else str(found or "ClusterIP")


@BOOK.rule("K8S-SVC-001", SERVICE, source=CORE)
def _some_port(inputs: Properties) -> Iterator[Violation]:
    """A Service has ports, unless it is headless or only a name."""
    portless = at(inputs, "spec.clusterIP") in ("None", UNKNOWN) or _type(inputs) in ("ExternalName", None)
    if not portless and absent(at(inputs, "spec.ports")):
        yield required("spec.ports")


@BOOK.rule("K8S-SVC-002", SERVICE, source=CORE)
def _port_names(inputs: Properties) -> Iterator[Violation]:
    """Several ports have different names, which are DNS labels."""
    found, seen = list(_ports(inputs)), set()
    for path, port in found:
        own = text(port.get("name"))
        if len(found) > 1 and absent(port.get("name")):
            yield required(f"{path}.name")
        if own and (wrong := grammar.label(own)):
            yield invalid(f"{path}.name", own, wrong)
        elif own and own in seen:
            yield duplicate(f"{path}.name", own)
        seen.add(own)


@BOOK.rule("K8S-SVC-003", SERVICE, source=CORE)
def _port_numbers(inputs: Properties) -> Iterator[Violation]:
    """Ports are numbers from 1 to 65535, and targets such numbers or names."""
    for path, port in _ports(inputs):
        number = whole(port.get("port"))
        if number is not None and (wrong := grammar.port(number)):
            yield invalid(f"{path}.port", number, wrong)
        target, number = port.get("targetPort"), whole(port.get("targetPort"))
        wrong = grammar.port(number) if number else None  # the API server takes 0 for the port itself
        if number is None and (label := text(target)):
            wrong = grammar.port_name(label)
        if wrong:
            yield invalid(f"{path}.targetPort", target, wrong)


@BOOK.rule("K8S-SVC-004", SERVICE, source=CORE)
def _one_each(inputs: Properties) -> Iterator[Violation]:
    """No port of a protocol is there twice."""
    seen = set()
    for path, port in _ports(inputs):
        if port.get("protocol") is UNKNOWN:
            continue
        key = (text(port.get("protocol")) or "TCP", whole(port.get("port")))
        if key[1] is not None and key in seen:
            yield duplicate(path, {"protocol": key[0], "port": key[1]})
        seen.add(key)


@BOOK.rule("K8S-SVC-005", SERVICE, source=CORE)
def _node_port_type(inputs: Properties) -> Iterator[Violation]:
    """Only a Service that is reached from outside has ports on the nodes."""
    for path, port in _ports(inputs):
        if _type(inputs) == "ClusterIP" and whole(port.get("nodePort")):
            yield forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'")


@BOOK.rule(
    "K8S-SVC-006",
    SERVICE,
    source="v1-27.docs.kubernetes.io/blog/2023/05/11/nodeport-dynamic-and-static-allocation",
)
def _node_port_range(inputs: Properties) -> Iterator[Violation]:
    """Ports on nodes are from 30000 to 32767."""
    for path, port in _ports(inputs):
        number = whole(port.get("nodePort"))
        if number and number not in _NODE_PORTS:
            detail = "provided port is not in the valid range. The range of valid ports is 30000-32767"
            yield invalid(f"{path}.nodePort", number, detail)


@BOOK.rule("K8S-SVC-007", SERVICE, source=CORE)
def _headless(inputs: Properties) -> Iterator[Violation]:
    """A Service without an address of its own is not reached from outside."""
    kind = _type(inputs)
    if at(inputs, "spec.clusterIP") == "None" and kind in ("LoadBalancer", "NodePort"):
        yield invalid("spec.clusterIP", "None", f"may not be set to 'None' for {kind} services")


@BOOK.rule("K8S-SVC-008", SERVICE, source=CORE)
def _external_name(inputs: Properties) -> Iterator[Violation]:
    """A Service that is only a name has one, and no address."""
    spec = mapping(inputs.get("spec"))
    if _type(inputs) != "ExternalName":
        return
    if not absent(spec.get("clusterIP")) and spec.get("clusterIP") is not UNKNOWN:
        yield forbidden("spec.clusterIP", "may not be set for ExternalName services")
    if absent(spec.get("externalName")):
        yield required("spec.externalName")
    elif (own := text(spec.get("externalName"))) and (wrong := grammar.subdomain(own.removesuffix("."))):
        yield invalid("spec.externalName", own, wrong)


@BOOK.rule("K8S-SVC-009", SERVICE, source=CORE)
def _address(inputs: Properties) -> Iterator[Violation]:
    """A Service's address is an address, `None`, or left to the cluster."""
    own = text(at(inputs, "spec.clusterIP"))
    if own and own != "None":
        try:
            ipaddress.ip_address(own)
        except ValueError:
            yield invalid("spec.clusterIP", own, "must be empty, 'None', or a valid IP address")


@BOOK.rule("K8S-SVC-010", SERVICE, source=CORE)
def _known_type(inputs: Properties) -> Iterator[Violation]:
    """There are four types of Services, and two kinds of session affinity."""
    kind, affinity = _type(inputs), at(inputs, "spec.sessionAffinity")
    if kind is not None and kind not in _TYPES:
        yield unsupported("spec.type", kind, _TYPES)
    if affinity not in (None, UNKNOWN, "", "ClientIP", "None"):
        yield unsupported("spec.sessionAffinity", affinity, ("ClientIP", "None"))


@BOOK.rule("K8S-SVC-011", SERVICE, source=CORE)
def _selector(inputs: Properties) -> Iterator[Violation]:
    """The selector of a Service has valid labels."""
    for key, value in mapping(at(inputs, "spec.selector")).items():
        if wrong := grammar.label_key(str(key)):
            yield invalid("spec.selector", key, wrong)
        if (content := text(value)) is not None and (wrong := grammar.label_value(content)):
            yield invalid("spec.selector", content, wrong)


@BOOK.rule("K8S-SVC-013", SERVICE, source=f"{CORE} (validateAffinityTimeout), v1.36.2")
def _affinity_time(inputs: Properties) -> Iterator[Violation]:
    """A client keeps its pod for at most a day."""
    path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
    time = whole(at(inputs, path))
    if time is None or at(inputs, "spec.sessionAffinity") != "ClientIP":
        return
    if not 0 < time <= _LONGEST_AFFINITY_S:
        yield invalid(path, time, f"must be greater than 0 and less than {_LONGEST_AFFINITY_S}")


@BOOK.rule("K8S-SVC-014", SERVICE, source=f"{CORE} (ValidateService: IsValidIPForLegacyField), v1.36.2")
def _external_addresses(inputs: Properties) -> Iterator[Violation]:
    """External addresses of a Service are addresses."""
    for index, own in texts(at(inputs, "spec.externalIPs")):
        try:
            ipaddress.ip_address(own)
        except ValueError:
            detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            yield invalid(f"spec.externalIPs[{index}]", own, detail)
