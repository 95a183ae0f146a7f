"""Versions that a stack on EKS pins, and the newest ones."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import requests
from botocore.exceptions import BotoCoreError, ClientError

from components.kubernetes.charts import charts_on
from infra.catalog.aws import facts
from infra.clouds.aws import login
from infra.errors import Problem
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import ClusterLayout
from stacks.clouds.aws.cluster import ADDONS
from trainstack.versions import newest
from trainstack.versions.aws import eks
from trainstack.versions.pins import NOTHING, Pin, Row, cluster_layout, every_node

_FAILURES = (BotoCoreError, ClientError, requests.RequestException, ValueError, KeyError)


def rows(spec: StackSpec) -> list[Row]:
    """Every pin with its newest version. Raises UserError for a stack without a cluster."""
    layout, on = cluster_layout(spec), spec.on
    assert isinstance(on, AwsSpec)

    @functools.cache
    def client(service: str) -> Any:
        return login.clients()(service, spec.region)

    known, minor = charts_on("aws"), layout.kubernetes_version

    def latest(pin: Pin) -> str | None:
        match pin.kind:
            case "Kubernetes":
                return eks.kubernetes(client("eks"))
            case "node image":
                return eks.node_image(client("ssm"), minor)
            case "add-on":
                return eks.addon(client("eks"), pin.name, minor, pin.version)
        return newest.chart(known[pin.name].chart, known[pin.name].repository, newest.fetched)

    pinned = {name: chart.version for name, chart in known.items()}
    return [_row(pin, latest) for pin in pins(layout, on, ADDONS, pinned)]


def _row(pin: Pin, latest: Callable[[Pin], str | None]) -> Row:
    try:
        with login.logged_in():
            return Row(pin, latest(pin))
    except login.LoggedOutError as error:
        rule = f"no request to AWS is possible: {error}"
        problem = Problem("credentials", None, rule, login.LOG_IN, code="logged-out")
        return Row(pin, None, error, problem)
    except _FAILURES as error:
        return Row(pin, None, error)


def pins(
    layout: ClusterLayout, on: AwsSpec, addons: Sequence[str], charts: Mapping[str, str]
) -> Iterator[Pin]:
    """The pins of a stack; `charts` are versions by name."""
    kubernetes = layout.kubernetes_version
    nodes = every_node(layout)
    yield Pin("Kubernetes", "control plane", kubernetes, f"{nodes}, after the control plane")
    yield Pin("node image", "all pools", facts.releases.node_image(kubernetes, on.node_image), nodes)
    for addon in addons:
        yield Pin("add-on", addon, facts.releases.addon(addon, kubernetes, on.addon_versions), NOTHING)
    for name, version in sorted(charts.items()):
        yield Pin("chart", name, version, NOTHING)


def update_problem(_: StackSpec) -> Problem | None:
    """None: the stack file pins add-ons and the node image."""
    return None
