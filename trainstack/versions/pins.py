"""Everything of a stack that has a version, with what a newer one would do to nodes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from infra.catalog.aws import facts
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.model import demanded

NOTHING = "nothing"


@dataclass(frozen=True)
class Pin:
    """One thing with a version."""

    kind: str
    """`Kubernetes`, `add-on`, `node image` or `chart`."""
    name: str
    version: str | None
    """None: EKS chose when it made the thing, and keeps it."""
    drains: str
    """Which nodes end when the version changes."""


def pins(
    layout: ClusterLayout, on: AwsSpec, addons: Sequence[str], charts: Mapping[str, str]
) -> Iterator[Pin]:
    """What a stack pins; `charts` are versions by name."""
    kubernetes = layout.kubernetes_version
    nodes = every_node(layout)
    yield Pin("Kubernetes", "control plane", kubernetes, f"{nodes}, after the control plane")
    yield Pin("node image", "all pools", facts.releases.node_image(kubernetes, on.node_image), nodes)
    for addon in addons:
        yield Pin("add-on", addon, facts.releases.addon(addon, kubernetes, on.addon_versions), NOTHING)
    for name, version in sorted(charts.items()):
        yield Pin("chart", name, version, NOTHING)


def gke_pins(layout: ClusterLayout, on: GcpSpec, charts: Mapping[str, str]) -> Iterator[Pin]:
    """What a stack on GKE pins: its add-ons, drivers and node images come with the version of the cluster.

    Nodes follow the control plane by themselves, in a window; held ones when their version's support ends.
    """
    held = "nothing: nodes follow when their version's support ends"
    drained = (
        held if demanded(on.maintenance).hold_nodes else f"{every_node(layout)}, in the maintenance window"
    )
    yield Pin("Kubernetes", "control plane", layout.kubernetes_version, drained)
    for name, version in sorted(charts.items()):
        yield Pin("chart", name, version, NOTHING)


def every_node(layout: ClusterLayout) -> str:
    """All pools with the least and the most nodes that they may have."""
    system = layout.system_pool
    pools = [("system", system.min_nodes, system.max_nodes)]
    pools += [(pool.name, pool.min_nodes, pool.max_nodes) for pool in layout.pools]
    return "every node of " + ", ".join(f"{name} ({least} to {most})" for name, least, most in pools)
