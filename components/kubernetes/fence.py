"""Namespaces of ours: what their pods may be, and whom they talk to (Pod Security, networking.k8s.io/v1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_kubernetes import core, networking
from pulumi_kubernetes.networking.v1 import (
    NetworkPolicyEgressRuleArgsDict,
    NetworkPolicyIngressRuleArgsDict,
    NetworkPolicyPortArgsDict,
)

# Pods of namespaces with this label may read the metrics of the platform's controllers.
METRICS_LABEL = "trainstack.dev/metrics"
_NAME = "kubernetes.io/metadata.name"
_HTTPS = 443

Child = Callable[..., pulumi.ResourceOptions]


@dataclass(frozen=True)
class Ports:
    """TCP ports of a controller's pods, by who connects. No policy holds probes: a node reaches its pods."""

    api_server: Sequence[int]
    """Webhooks, and API groups that the controller serves."""
    metrics: Sequence[int]
    asked: Sequence[int] = ()
    """Of other pods, which the controller's connect to besides names and HTTPS."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the namespace, by which those pods let the controller's in."""


def restricted() -> dict[str, str]:
    """Labels of a namespace in which Kubernetes refuses a pod that asks for more than `restricted` gives."""
    return {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}


def out_to_dns() -> NetworkPolicyEgressRuleArgsDict:
    """Names are looked up in kube-system."""
    return {
        "to": [{"namespace_selector": {"match_labels": {_NAME: "kube-system"}}}],
        "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
    }


def closed(
    name: str, namespace: pulumi.Input[str], called: str, opts: pulumi.ResourceOptions, *, out: bool = True
) -> networking.v1.NetworkPolicy:
    """A policy of all pods: what no other one lets in stays out. Without `out` they reach nothing, either."""
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

    In: the API server, from the ranges `control_plane`, to webhooks; readers of metrics from namespaces with
    that label. Out: names, and HTTPS, by which the API server is reached. No address limits the latter: some
    networks look at it before the Service's address is translated, some after.
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
    # A rule without peers lets everybody in, one without ports to all of them (networking/v1).
    return [{"from_": who, "ports": _tcp(numbers)} for who, numbers in asked if who and numbers]


def _tcp(numbers: Sequence[int]) -> list[NetworkPolicyPortArgsDict]:
    return [{"port": number, "protocol": "TCP"} for number in numbers]
