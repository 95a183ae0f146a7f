"""Namespaces of the platform: Pod Security labels and network policies (networking.k8s.io/v1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_kubernetes import core, networking
from pulumi_kubernetes.networking.v1 import (
    NetworkPolicyEgressRuleArgsDict,
    NetworkPolicyIngressRuleArgsDict,
    NetworkPolicyPortArgsDict,
)

from components.base import Child

# Pods of namespaces with this label may read the metrics of the platform's controllers.
METRICS_LABEL = "trainstack.dev/metrics"
_NAME = "kubernetes.io/metadata.name"
_HTTPS = 443


@dataclass(frozen=True)
class Ports:
    """TCP ports of a controller's pods, by client. No policy applies to probes: a node reaches its pods."""

    api_server: Sequence[int]
    """Webhooks, and API groups that the controller serves."""
    metrics: Sequence[int]
    asked: Sequence[int] = ()
    """Ports of other pods that the controller's pods connect to, besides DNS and HTTPS."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the namespace, with which the policies of those pods admit the controller's."""


def restricted() -> dict[str, str]:
    """Labels of a namespace with the Pod Security Standard `restricted`."""
    return {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}


def out_to_dns() -> NetworkPolicyEgressRuleArgsDict:
    """Egress to DNS in kube-system."""
    return {
        "to": [{"namespace_selector": {"match_labels": {_NAME: "kube-system"}}}],
        "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
    }


def closed(
    name: str, namespace: pulumi.Input[str], called: str, opts: pulumi.ResourceOptions, *, out: bool = True
) -> networking.v1.NetworkPolicy:
    """A policy for all pods: denies ingress that no other one allows. Without `out` it denies egress, too."""
    return networking.v1.NetworkPolicy(
        name,
        metadata={"name": called, "namespace": namespace},
        spec={"pod_selector": {}, "policy_types": ["Ingress"] if out else ["Ingress", "Egress"]},
        opts=opts,
    )


def controllers(
    name: str, namespace: str, ports: Ports, control_plane: Sequence[str], child: Child
) -> list[pulumi.Resource]:
    """The namespace of a controller, and the policy of its pods; the controller comes after both.

    Ingress: the API server, from the ranges `control_plane`, to webhooks; readers of metrics from namespaces
    with that label. Egress: DNS, and HTTPS for the API server. No address limits the latter: some networks
    evaluate it before the Service's address is translated, some after.
    """
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
            "ingress": _into(ports, control_plane),
            "egress": [out_to_dns(), {"ports": _tcp((_HTTPS, *ports.asked))}],
        },
        opts=child(pulumi.ResourceOptions(depends_on=[space])),
    )
    return [space, policy]


def _into(ports: Ports, control_plane: Sequence[str]) -> list[NetworkPolicyIngressRuleArgsDict]:
    server: Sequence[Any] = [{"ip_block": {"cidr": cidr}} for cidr in control_plane]
    readers: Sequence[Any] = [{"namespace_selector": {"match_labels": {METRICS_LABEL: "allowed"}}}]
    asked = ((server, ports.api_server), (readers, ports.metrics))
    # A rule without peers allows all peers, one without ports all ports (networking/v1).
    return [{"from_": who, "ports": _tcp(numbers)} for who, numbers in asked if who and numbers]


def _tcp(numbers: Sequence[int]) -> list[NetworkPolicyPortArgsDict]:
    return [{"port": number, "protocol": "TCP"} for number in numbers]
