"""Versions that a stack pins, and the nodes that a newer one drains."""

import re
from dataclasses import dataclass

from agents.shared import schemas
from components.kubernetes.definitions.schemas import schemas as of_charts
from infra.errors import Problem, UserError
from infra.stackspec import StackSpec
from infra.stackspec.layouts import ClusterLayout
from trainstack.version_order import order

NOTHING = "nothing"


@dataclass(frozen=True)
class Pin:
    """One thing with a version."""

    kind: str
    """`Kubernetes`, `add-on`, `node image` or `chart`."""
    name: str
    version: str | None
    """None: EKS chose it at creation, and keeps it."""
    drains: str
    """The nodes that are drained when the version changes."""


@dataclass(frozen=True)
class Row:
    """A pin, and the newest version or why it is unknown."""

    pin: Pin
    newest: str | None
    error: Exception | None = None
    logged_out: Problem | None = None
    """The problem, where the request failed for want of a login."""

    @property
    def is_newer(self) -> bool:
        """Return whether there is a newer version."""
        return self.newest is not None and order(self.newest) > order(self.pin.version or "")

    @property
    def steps(self) -> list[str]:
        """The versions of an update, one after the other, the newest last; empty where none is newer.

        A control plane of Kubernetes is updated by one minor version at a time, on both clouds. A chart goes
        as far as its stored schemas allow.
        """
        pinned, newest = self.pin.version, self.newest
        if not self.is_newer or not pinned or not newest:
            return []
        if self.pin.kind == "Kubernetes":
            return minors(pinned, newest)
        if self.pin.kind == "chart" and self.pin.name in of_charts():
            return schemas.steps(of_charts()[self.pin.name].lines, pinned, newest)
        return [newest]


def minors(pinned: str, newest: str) -> list[str]:
    """Every minor version after `pinned` up to `newest`, such as 1.35 and 1.36 after 1.34."""
    (major, first), (_, last) = (map(int, re.findall(r"\d+", one)[:2]) for one in (pinned, newest))
    return [f"{major}.{minor}" for minor in range(first + 1, last)] + [newest]


def cluster_layout(spec: StackSpec) -> ClusterLayout:
    """The layout of a stack with a cluster. Raises UserError for others."""
    if not isinstance(spec.layout, ClusterLayout):
        fix = "Name a stack on AWS or Google Cloud with a cluster."
        raise UserError([Problem("stack", spec.name, "only clusters pin versions", fix, code="no-pins")])
    return spec.layout


def moved(spec: StackSpec, minor: str) -> StackSpec:
    """The spec with another minor version of Kubernetes, to ask for what runs on it; it is not checked."""
    layout = cluster_layout(spec).model_copy(update={"kubernetes_version": minor})
    return spec.model_copy(update={"layout": layout})


def every_node(layout: ClusterLayout) -> str:
    """All pools with their minimum and maximum number of nodes."""
    system = layout.system_pool
    pools = [("system", system.min_nodes, system.max_nodes)]
    pools += [(pool.name, pool.min_nodes, pool.max_nodes) for pool in layout.pools]
    return "every node of " + ", ".join(f"{name} ({least} to {most})" for name, least, most in pools)
