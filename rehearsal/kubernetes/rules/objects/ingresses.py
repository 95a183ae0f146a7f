"""Ingresses: rules, paths, backends."""

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import absent, at, mapping, rows, text, texts, whole
from rehearsal.kubernetes.rules.book import BOOK
from rehearsal.kubernetes.rules.violations import invalid, required, unsupported

INGRESS = "kubernetes:networking.k8s.io/v1:Ingress"
_SOURCE = "kubernetes/kubernetes pkg/apis/networking/validation/validation.go"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_ENDS = ("/..", "/.")
_WILDCARD = re.compile(r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _paths(inputs: Properties) -> Iterator[tuple[str, Any]]:
    for index, rule in rows(at(inputs, "spec.rules")):
        for place, row in rows(at(rule, "http.paths")):
            yield f"spec.rules[{index}].http.paths[{place}]", row


@BOOK.rule("K8S-ING-001", INGRESS, source=f"{_SOURCE} (validateHTTPIngressPath)")
def _path(inputs: Properties) -> Iterator[Violation]:
    """A path has a type and, unless only the controller reads it, is absolute and plain."""
    for here, row in _paths(inputs):
        kind, path = row.get("pathType"), row.get("path")
        if kind is None:
            yield required(f"{here}.pathType", "pathType must be specified")
            continue
        if kind not in (*_PATH_TYPES, UNKNOWN):
            yield unsupported(f"{here}.pathType", kind, _PATH_TYPES)
            continue
        given = text(path) if path is not None else ""
        if given is None or (kind in ("ImplementationSpecific", UNKNOWN) and not given):
            continue
        if not given.startswith("/"):
            yield invalid(f"{here}.path", given, "must be an absolute path", f"Write /{given}.")
        elif kind in ("Exact", "Prefix") and given:
            yield from (
                invalid(f"{here}.path", given, f"must not contain '{part}'")
                for part in _PARTS
                if part in given
            )
            yield from (
                invalid(f"{here}.path", given, f"cannot end with '{end}'")
                for end in _ENDS
                if given.endswith(end)
            )


@BOOK.rule("K8S-ING-002", INGRESS, source=f"{_SOURCE} (validateIngressBackend)")
def _backends(inputs: Properties) -> Iterator[Violation]:
    """A backend is a Service with a port, by number or by name, or another resource."""
    found = [(f"{here}.backend", row.get("backend")) for here, row in _paths(inputs)]
    if at(inputs, "spec.defaultBackend") is not None:
        found.append(("spec.defaultBackend", at(inputs, "spec.defaultBackend")))
    for here, backend in found:
        service, resource = mapping(backend).get("service"), mapping(backend).get("resource")
        if service is not None and resource is not None:
            yield invalid(here, "", "cannot set both resource and service backends")
        elif backend is not UNKNOWN and service is None and resource is None:
            yield required(here, "cannot be empty")
        elif isinstance(service, dict):
            yield from _service(f"{here}.service", service)


def _service(here: str, service: dict[str, Any]) -> Iterator[Violation]:
    own, port = service.get("name"), mapping(service.get("port"))
    if absent(own):
        yield required(f"{here}.name")
    elif (plain := text(own)) and (wrong := grammar.label_1035(plain)):
        yield invalid(f"{here}.name", plain, wrong)
    if service.get("port") is UNKNOWN or UNKNOWN in port.values():
        return
    label, number = text(port.get("name")), whole(port.get("number"))
    if label and number:
        yield invalid(here, "", "cannot set both port name & port number")
    elif label and (wrong := grammar.port_name(label)):
        yield invalid(f"{here}.port.name", label, wrong)
    elif number is not None and number != 0 and (wrong := grammar.port(number)):
        yield invalid(f"{here}.port.number", number, wrong)
    elif not label and not number:
        yield required(here, "port name or number is required")


@BOOK.rule("K8S-ING-003", INGRESS, source=f"{_SOURCE} (validateIngressRules, ValidateIngressSpec)")
def _hosts(inputs: Properties) -> Iterator[Violation]:
    """An Ingress has rules or a default; hosts are names, maybe with a wildcard as first label."""
    spec = inputs.get("spec")
    if isinstance(spec, dict) and absent(spec.get("rules")) and spec.get("defaultBackend") is None:
        yield invalid("spec", "", "either `defaultBackend` or `rules` must be specified")
    found = [
        (f"spec.rules[{index}].host", text(row.get("host"))) for index, row in rows(at(inputs, "spec.rules"))
    ]
    for index, row in rows(at(inputs, "spec.rules")):
        if isinstance(row.get("http"), dict) and absent(row["http"].get("paths")):
            yield required(f"spec.rules[{index}].http.paths")
    for index, row in rows(at(inputs, "spec.tls")):
        found += [(f"spec.tls[{index}].hosts[{place}]", host) for place, host in texts(row.get("hosts"))]
    for here, host in found:
        if not host:
            continue
        if ".rules[" in here and _is_address(host):
            yield invalid(here, host, "must be a DNS name, not an IP address")
        elif "*" in host:
            if not _WILDCARD.fullmatch(host):
                yield invalid(
                    here, host, "a wildcard DNS-1123 subdomain must start with '*.', followed by a subdomain"
                )
        elif wrong := grammar.subdomain(host):
            yield invalid(here, host, wrong)


@BOOK.rule("K8S-ING-004", INGRESS, source=f"{_SOURCE} (ValidateIngressCreate)")
def _class(inputs: Properties) -> Iterator[Violation]:
    """The older annotation for the class of an Ingress names the class of its field."""
    annotations, own = mapping(at(inputs, "metadata.annotations")), at(inputs, "spec.ingressClassName")
    older = "kubernetes.io/ingress.class"
    named = annotations.get(older)
    if own is not None and named not in (None, own) and UNKNOWN not in (own, named):
        detail = "must match `ingressClassName` when both are specified"
        yield invalid(f"metadata.annotations.{older}", named, detail)
    if isinstance(own, str) and (wrong := grammar.subdomain(own)):
        yield invalid("spec.ingressClassName", own, wrong)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
