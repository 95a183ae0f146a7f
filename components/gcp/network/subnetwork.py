"""Custom IPv4 networks and subnetworks with flow logs, as all of a stack are."""

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from infra.naming import sanitize

# A name has at most 63 characters (VPC documentation); Pulumi takes eight for what makes it unique.
NAME_LENGTH = 55
AGGREGATION = "INTERVAL_10_MIN"  # the shortest, 5 seconds, writes and bills up to 120 times the records
SAMPLING = 0.5  # Google's default: long transfers show all the same, and records cost half


def short(name: str) -> str:
    """A logical name with space for Pulumi's characters; ends in a digest when it is too long."""
    return sanitize(name, max_length=NAME_LENGTH)


def flow_log() -> gcp.compute.SubnetworkLogConfigArgs:
    """Connections between addresses, with the names of nodes and pods."""
    return gcp.compute.SubnetworkLogConfigArgs(
        aggregation_interval=AGGREGATION, flow_sampling=SAMPLING, metadata="INCLUDE_ALL_METADATA"
    )


def custom_network(
    component: Component,
    name: str,
    *,
    description: str,
    mtu: int,
    profile: str | None = None,
    kept: Sequence[str] = (),
) -> gcp.compute.Network:
    """A VPC network without automatic subnetworks. `mtu` is its largest packet in bytes.

    Running machines keep the old size when it changes, and lose larger packets: choose it once. Changes of
    the properties `kept` are ignored.
    """
    return gcp.compute.Network(
        short(name),
        description=description,
        auto_create_subnetworks=False,
        mtu=mtu,
        routing_mode="REGIONAL",
        network_profile=profile,
        opts=component.child(pulumi.ResourceOptions(ignore_changes=[*kept])),
    )


def let_in(
    component: Component, name: str, *, network: pulumi.Input[str], source: str, description: str
) -> gcp.compute.Firewall:
    """A firewall rule: addresses in `source` may connect to everything in the network."""
    return gcp.compute.Firewall(
        short(name),
        network=network,
        description=description,
        direction="INGRESS",
        source_ranges=[source],
        allows=[gcp.compute.FirewallAllowArgs(protocol=protocol) for protocol in ("tcp", "udp", "icmp")],
        opts=component.child(),
    )
