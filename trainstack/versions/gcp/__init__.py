"""Versions that a stack on GKE pins, and the newest ones."""

from collections.abc import Callable, Iterator, Mapping

import requests

from components.kubernetes.charts import charts_on
from infra.clouds.gcp import login
from infra.clouds.gcp.api import ApiRequestError
from infra.errors import Problem
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.model import demanded
from trainstack.preflight.gcp import versions as gke
from trainstack.preflight.gcp.project import Project
from trainstack.versions import newest
from trainstack.versions.pins import NOTHING, Pin, Row, cluster_layout, every_node

_ATTEMPTS = 4
_FAILURES = (ApiRequestError, requests.RequestException, ValueError, KeyError)


def rows(spec: StackSpec) -> list[Row]:
    """Every pin with its newest version. Raises UserError for a stack without a cluster."""
    layout, on, known = cluster_layout(spec), spec.on, charts_on("gcp")
    assert isinstance(on, GcpSpec)

    def latest(pin: Pin) -> str | None:
        if pin.kind == "chart":
            return newest.chart(known[pin.name].chart, known[pin.name].repository, newest.fetched)
        config = Project.logged_in(spec, layout, on, _ATTEMPTS).server_config
        return gke.newest_minor(config, demanded(on.channel), str(pin.version))

    pinned = {name: chart.version for name, chart in known.items()}
    return [_row(pin, latest) for pin in pins(layout, on, pinned)]


def _row(pin: Pin, latest: Callable[[Pin], str | None]) -> Row:
    try:
        with login.logged_in():
            return Row(pin, latest(pin))
    except login.LoggedOutError as error:
        rule = f"no request to Google Cloud is possible: {error}"
        problem = Problem("credentials", None, rule, login.LOG_IN, code="logged-out")
        return Row(pin, None, error, problem)
    except _FAILURES as error:
        return Row(pin, None, error)


def pins(layout: ClusterLayout, on: GcpSpec, charts: Mapping[str, str]) -> Iterator[Pin]:
    """The pins of a stack: add-ons, drivers and node images come with the version of the cluster.

    Nodes follow the control plane automatically, in a window; held ones when support of their version ends.
    """
    held = "nothing: nodes follow when their version's support ends"
    drained = (
        held if demanded(on.maintenance).hold_nodes else f"{every_node(layout)}, in the maintenance window"
    )
    yield Pin("Kubernetes", "control plane", layout.kubernetes_version, drained)
    for name, version in sorted(charts.items()):
        yield Pin("chart", name, version, NOTHING)


def update_problem(_: StackSpec) -> Problem | None:
    """The stack file has no version that could be written."""
    rule = "a stack file pins no add-on and no node image on Google Cloud: GKE brings them with its version"
    fix = (
        "Leave --update out. The minor version is layout.kubernetes_version, of the channel on.channel; "
        "patches come in the window on.maintenance; charts come with this checkout."
    )
    return Problem("--update", None, rule, fix, code="versions-not-pinned")
