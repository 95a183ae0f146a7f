"""Egress rules of a stack's network, and ingress for Managed Lustre; GKE manages the rest of ingress.

A custom network denies all ingress and allows all egress. GKE itself adds the ingress rules of a cluster for
its lifetime: nodes and pods to each other, the control plane to the kubelets, and, for each Service of
type LoadBalancer, clients and health checks. A rule of ours for the same would only outlive the cluster.
GKE adds no egress rules and relies on the default one that allows all: where the rest is denied,
nodes, pods and the control plane must be allowed (GKE documentation, "Automatically created firewall
rules", read 2026-11-25). The metadata server, which also serves DNS and NTP, is always reachable (VPC
documentation, "Always allowed traffic").
"""

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.network.subnetwork import short

EVERYWHERE = "0.0.0.0/0"
_LUSTRE_PORT = "988"
# Identity-Aware Proxy documentation, "Using IAP for TCP forwarding" (ranges of forwarding).
_IAP, _SSH = "35.235.240.0/20", "22"
# A lower number has precedence; GKE's own rules have 1000, the two rules of every network 65535.
_ALLOWED, _REST = 1000, 65000


def way_out(
    component: Component, name: str, *, network: pulumi.Input[str], cidr: str
) -> list[gcp.compute.Firewall]:
    """Nodes and pods reach everything in the stack's own range, and HTTPS elsewhere; the rest is logged.

    The range holds the control plane's address in the nodes' subnetwork, and Cloud SQL, Lustre and Filestore
    behind the peering. HTTPS is for Google's APIs, registries of images and packages, and the public address
    of a control plane that has one. Packages over plain HTTP and Git over SSH are denied.
    """
    inside = "Nodes and pods to each other, to the control plane and to managed services"
    https = "Google's APIs, and registries of images and packages through NAT"
    allowed = [
        gcp.compute.Firewall(
            short(f"{name}-out-{what}"),
            network=network,
            description=text,
            direction="EGRESS",
            priority=_ALLOWED,
            destination_ranges=[destination],
            allows=[traffic],
            opts=component.child(),
        )
        for what, text, destination, traffic in (
            ("inside", inside, cidr, gcp.compute.FirewallAllowArgs(protocol="all")),
            ("https", https, EVERYWHERE, gcp.compute.FirewallAllowArgs(protocol="tcp", ports=["443"])),
        )
    ]
    rest = gcp.compute.Firewall(
        short(f"{name}-out-rest"),
        network=network,
        description="Nothing else leaves, and what tried to is in the log",
        direction="EGRESS",
        priority=_REST,
        destination_ranges=[EVERYWHERE],
        denies=[gcp.compute.FirewallDenyArgs(protocol="all")],
        log_config=gcp.compute.FirewallLogConfigArgs(metadata="INCLUDE_ALL_METADATA"),
        # Allow rules are created first and deleted last: GKE needs them as long as nodes exist.
        opts=component.child(pulumi.ResourceOptions(depends_on=allowed)),
    )
    return [*allowed, rest]


def lustre_servers_in(
    component: Component, name: str, *, network: pulumi.Input[str], servers: str
) -> gcp.compute.Firewall:
    """Servers of Managed Lustre connect to the nodes that mount it.

    Without this, mounts hang, and clients are evicted when the servers call them back (Managed Lustre
    documentation, "Configure a VPC network"; cluster-toolkit@10470803 examples/gke-managed-lustre.yaml).
    """
    return gcp.compute.Firewall(
        short(f"{name}-in-lustre"),
        network=network,
        description="Managed Lustre to the nodes that mount it",
        direction="INGRESS",
        source_ranges=[servers],
        allows=[gcp.compute.FirewallAllowArgs(protocol="tcp", ports=[_LUSTRE_PORT])],
        opts=component.child(),
    )


def logins_in(component: Component, name: str, *, network: pulumi.Input[str]) -> gcp.compute.Firewall:
    """SSH through Identity-Aware Proxy, which admits callers with the right to a tunnel."""
    return gcp.compute.Firewall(
        short(f"{name}-in-iap"),
        network=network,
        description="SSH through Identity-Aware Proxy",
        direction="INGRESS",
        source_ranges=[_IAP],
        allows=[gcp.compute.FirewallAllowArgs(protocol="tcp", ports=[_SSH])],
        opts=component.child(),
    )
