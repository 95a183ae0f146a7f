"""Admission policies of a stack: the rules of the policy pack about single objects."""

from components.kubernetes.admission import AdmissionPolicies
from infra.stackspec import StackSpec
from infra.stackspec.layouts import ClusterLayout
from policies.admission.manifests import Action, manifests
from stacks.parts import Cluster

# Environments that reject violations by default.
_REFUSING = ("staging", "prod")


def admission(spec: StackSpec, layout: ClusterLayout, cluster: Cluster) -> AdmissionPolicies:
    """Declare the policies, with the action of the spec on a violation."""
    return AdmissionPolicies(
        f"{spec.name}-admission", {"objects": manifests(actions=actions(spec, layout))}, cluster.inside
    )


def actions(spec: StackSpec, layout: ClusterLayout) -> tuple[Action, ...]:
    """Actions on a violation."""
    return ("Deny",) if refuses(spec, layout) else ("Warn", "Audit")


def refuses(spec: StackSpec, layout: ClusterLayout) -> bool:
    """Return whether objects that violate a rule are denied."""
    return (layout.admission or ("deny" if spec.environment in _REFUSING else "warn")) == "deny"
