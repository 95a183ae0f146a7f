"""Enforcement of network policies: a cluster accepts them also without an engine."""

import json
from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.kubernetes.control_plane import EKS, GKE
from policies.rules.kubernetes.objects import metadata
from policies.rules.pools import is_auto_mode
from policies.rules.properties import is_true
from policies.stack import Stack

_ADDON, _CONFIG = "aws:eks/addon:Addon", "kubernetes:core/v1:ConfigMap"
_POLICY = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
_CHARTS = ("kubernetes:helm.sh/v3:Release", "kubernetes:helm.sh/v4:Chart", "kubernetes:helm.sh/v3:Chart")
_ENGINES = ("cilium", "calico", "tigera-operator", "antrea")
_FIX = 'Add the ConfigMap amazon-vpc-cni in kube-system with enable-network-policy-controller: "true".'


@CATALOG.rule_around(
    "MLS-K8S-09",
    "high",
    (EKS, GKE),
    "EKS, and GKE without Dataplane V2, accept network policies and enforce none by default.",
    'Set enableNetworkPolicy to "true" in the add-on vpc-cni, or datapathProvider to ADVANCED_DATAPATH.',
    (
        "EKS User Guide, cni-network-policy-configure and auto-net-pol",
        "amazon-vpc-cni-k8s docs/network-policy-faq",
    ),
)
def network_policies_are_enforced(cluster: Resource, stack: Stack) -> Iterator[Violation]:
    """A cluster enforces the network policies that it has."""
    if stack.once(_has_engine):
        return
    if cluster.kind == GKE:
        yield from _of_gke(cluster.props)
    elif is_auto_mode(cluster):
        if not stack.once(_is_enabled_in_auto_mode):
            yield Violation("nothing enforces the network policies of the stack", "computeConfig", _FIX)
    else:
        yield from _of_addon(cluster, stack)


def _has_engine(stack: Stack) -> bool:
    if not stack.all(_POLICY):
        raise NotApplicableError("the stack has no network policies")
    return any(map(_is_engine, stack.all(*_CHARTS)))


def _is_engine(chart: Resource) -> bool:
    """Return whether a chart installs a policy engine; that of the VPC CNI needs an option."""
    name = str(chart.props.get("chart") or chart.name).rpartition("/")[2]
    values = chart.props.get("values") or {}
    return name in _ENGINES or (name == "aws-vpc-cni" and is_true(values.get("enableNetworkPolicy")))


def _of_gke(props: Any) -> Iterator[Violation]:
    if props.get("enableAutopilot") is True or props.get("datapathProvider") == "ADVANCED_DATAPATH":
        return
    if (props.get("networkPolicy") or {}).get("enabled") is not True:
        yield Violation("nothing enforces the network policies of the stack", "datapathProvider")


def _is_enabled_in_auto_mode(stack: Stack) -> bool:
    for config in stack.all(_CONFIG):
        where = (metadata(config).get("namespace"), metadata(config).get("name"))
        enabled = (config.props.get("data") or {}).get("enable-network-policy-controller")
        if where == ("kube-system", "amazon-vpc-cni") and enabled == "true":
            return True
    return False


def _of_addon(cluster: Resource, stack: Stack) -> Iterator[Violation]:
    addons = stack.users(cluster, _ADDON, "clusterName")
    own = [addon for addon in addons if addon.props.get("addonName") == "vpc-cni"]
    if not own:
        # EKS installs it without the option by default.
        yield Violation("nothing enforces the network policies: it has no add-on vpc-cni", "name")
    for addon in own:
        text = addon.props.get("configurationValues") or "{}"
        try:
            values = json.loads(text)
        except ValueError:
            # YAML is accepted, too.
            raise UndeterminedError("the add-on's configurationValues are not JSON") from None
        if not is_true(values.get("enableNetworkPolicy")):
            what = "nothing enforces the network policies: the add-on vpc-cni has no enableNetworkPolicy"
            yield Violation(what, "configurationValues", resource=addon)
