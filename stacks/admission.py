"""The policies of the API server that a stack has: the rules about one object, from the policy pack."""

from components.kubernetes.admission import AdmissionPolicies
from infra.stackspec import StackSpec
from infra.stackspec.layouts import ClusterLayout
from policies.admission.manifests import Action, manifests
from stacks.parts import Cluster

# Where what is refused is found out before anybody depends on it.
_REFUSING = ("staging", "prod")


def admission(spec: StackSpec, layout: ClusterLayout, cluster: Cluster) -> AdmissionPolicies:
    """Declare the policies, with what the spec says that follows from breaking one."""
    return AdmissionPolicies(
        f"{spec.name}-admission", {"objects": manifests(actions=actions(spec, layout))}, cluster.inside
    )


def actions(spec: StackSpec, layout: ClusterLayout) -> tuple[Action, ...]:
    """What follows where an object breaks a policy."""
    wanted = layout.admission or ("deny" if spec.environment in _REFUSING else "warn")
    return ("Deny",) if wanted == "deny" else ("Warn", "Audit")
