"""Namespaces of the platform: Pod Security labels and network policies (networking.k8s.io/v1)."""

import datetime
import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import pulumi
from pulumi_kubernetes import core, networking

from components.base import Child

if TYPE_CHECKING:
    # Commands read constants here, without the SDK's modules.
    from pulumi_kubernetes.networking.v1 import (
        NetworkPolicyEgressRuleArgsDict,
        NetworkPolicyIngressRuleArgsDict,
        NetworkPolicyPeerArgsDict,
        NetworkPolicyPortArgsDict,
    )

# Pods of namespaces with this label may read the metrics of the platform's controllers.
METRICS_LABEL = "trainstack.dev/metrics"
_NAME = "kubernetes.io/metadata.name"
# Platforms that stacks create. A policy of a program without webhooks is the same on all of them.
CREATED = ("eks", "gke")


class RelayRow(TypedDict):
    """Pods that relay connections of the API server."""

    namespace: Mapping[str, str]
    """Labels of their namespace."""
    pods: Mapping[str, str]
    """Labels of the pods; empty: all of the namespace, and on OpenShift its host network."""


class DnsRow(TypedDict):
    """The cluster DNS, by its pods."""

    namespace: str
    port: int
    """Port of the pods, not of the Service."""


@dataclass(frozen=True)
class Platform:
    """One row of `platforms.toml`."""

    control_plane: Sequence[RelayRow]
    addresses: bool
    """True where ipBlock peers match the API server."""
    api_ports: Sequence[int]
    dns: Sequence[DnsRow]
    resolvers: Sequence[str]
    source: str
    date: datetime.date


@dataclass(frozen=True)
class PlatformNetwork:
    """The network of a cluster between its control plane and its pods."""

    platform: str
    """Key in `platforms.toml`."""
    ranges: Sequence[str]
    """Address ranges from which the API server connects to pods, where it does so itself."""


@functools.cache
def platforms() -> Mapping[str, Platform]:
    """All rows by their key."""
    table = Path(__file__).parent / "platforms.toml"
    return {key: Platform(**row) for key, row in tomllib.loads(table.read_text(encoding="utf-8")).items()}


def api_server(control_plane: PlatformNetwork) -> "list[NetworkPolicyPeerArgsDict]":
    """Peers that match the connections of the API server to pods: webhooks and aggregated APIs alike."""
    row = platforms()[control_plane.platform]
    relays: list[NetworkPolicyPeerArgsDict] = [
        {
            "namespace_selector": {"match_labels": dict(relay["namespace"])},
            "pod_selector": {"match_labels": dict(relay["pods"])} if relay["pods"] else {},
        }
        for relay in row.control_plane
    ]
    ranges: list[NetworkPolicyPeerArgsDict] = [
        {"ip_block": {"cidr": cidr}} for cidr in control_plane.ranges if row.addresses
    ]
    return relays + ranges


@dataclass(frozen=True)
class Ports:
    """TCP ports of a controller's pods, by client. No policy applies to probes: a node reaches its pods."""

    api_server: Sequence[int]
    """Webhooks, and API groups that the controller serves."""
    metrics: Sequence[int]
    asked: Sequence[int] = ()
    """Ports of other pods that the controller's pods connect to, besides DNS and the API server."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the namespace, with which the policies of those pods admit the controller's."""


def restricted() -> dict[str, str]:
    """Labels of a namespace with the Pod Security Standard `restricted`."""
    return {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}


def out_to_dns(*keys: str) -> "list[NetworkPolicyEgressRuleArgsDict]":
    """Egress to the DNS of the platforms, by default of those that stacks create.

    Peers that a platform does not have match nothing there.
    """
    rows = [platforms()[key] for key in keys or CREATED]
    pods = dict.fromkeys((dns["namespace"], dns["port"]) for row in rows for dns in row.dns)
    resolvers = dict.fromkeys(cidr for row in rows for cidr in row.resolvers)
    found: list[NetworkPolicyEgressRuleArgsDict] = [
        {"to": [{"namespace_selector": {"match_labels": {_NAME: namespace}}}], "ports": _both(port)}
        for namespace, port in pods
    ]
    if resolvers:
        found.append({"to": [{"ip_block": {"cidr": cidr}} for cidr in resolvers], "ports": _both(53)})
    return found


def closed(
    name: str, namespace: pulumi.Input[str], called: str, opts: pulumi.ResourceOptions, *, out: bool = True
) -> "networking.v1.NetworkPolicy":
    """A policy for all pods: denies ingress that no other one allows. Without `out` it denies egress, too."""
    return networking.v1.NetworkPolicy(
        name,
        metadata={"name": called, "namespace": namespace},
        spec={"pod_selector": {}, "policy_types": ["Ingress"] if out else ["Ingress", "Egress"]},
        opts=opts,
    )


def controllers(
    name: str, namespace: str, ports: Ports, control_plane: PlatformNetwork | None, child: Child
) -> list[pulumi.Resource]:
    """The namespace of a controller, and the policy of its pods; the controller comes after both.

    Ingress: the API server of `control_plane` to webhooks (None: there are none); readers of metrics from
    namespaces with that label. Egress: DNS, and the API server. No address limits the latter: some networks
    evaluate it before the Service's address is translated, some after.
    """
    where = [control_plane.platform] if control_plane else CREATED
    out = sorted({port for key in where for port in platforms()[key].api_ports} | set(ports.asked))
    space = core.v1.Namespace(
        f"{name}-namespace",
        metadata={"name": namespace, "labels": {**restricted(), **ports.labels}},
        opts=child(),
    )
    policy = networking.v1.NetworkPolicy(
        f"{name}-policy",
        metadata={"name": "controllers", "namespace": namespace},
        spec={
            "pod_selector": {},
            "policy_types": ["Ingress", "Egress"],
            "ingress": _into(ports, api_server(control_plane) if control_plane else []),
            "egress": [*out_to_dns(*where), {"ports": _tcp(out)}],
        },
        opts=child(pulumi.ResourceOptions(depends_on=[space])),
    )
    return [space, policy]


def _into(
    ports: Ports, server: "Sequence[NetworkPolicyPeerArgsDict]"
) -> "list[NetworkPolicyIngressRuleArgsDict]":
    readers: Sequence[NetworkPolicyPeerArgsDict] = [
        {"namespace_selector": {"match_labels": {METRICS_LABEL: "allowed"}}}
    ]
    asked = ((server, ports.api_server), (readers, ports.metrics))
    # A rule without peers allows all peers, one without ports all ports (networking/v1).
    return [{"from_": who, "ports": _tcp(numbers)} for who, numbers in asked if who and numbers]


def _both(port: int) -> "list[NetworkPolicyPortArgsDict]":
    return [{"port": port, "protocol": protocol} for protocol in ("UDP", "TCP")]


def _tcp(numbers: Sequence[int]) -> "list[NetworkPolicyPortArgsDict]":
    return [{"port": number, "protocol": "TCP"} for number in numbers]
