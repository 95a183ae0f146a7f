"""SchedMD's slurm-operator (Slinky), which runs Slurm's daemons as pods."""

from collections.abc import Mapping
from typing import Any, Final, TypedDict

import pulumi

from components.base import Component, Options
from components.kubernetes.charts import charts, release
from components.kubernetes.network_policies import PlatformNetwork, Ports, controllers
from components.ordering import after

DEFINITIONS, CHART = "slurm-operator-crds", "slurm-operator"
RESTAPI_PORT: Final = 6820
"""Port of slurmrestd, by which the operator drains nodes (v1.1.0 restapibuilder/restapi_service.go)."""
PORTS: Final = Ports(
    api_server=(9443,),
    metrics=(8080,),
    asked=(RESTAPI_PORT,),
    # The chart's pods set no securityContext, and take none from values: `restricted` refuses them.
    labels={"pod-security.kubernetes.io/enforce": "baseline"},
)
_APART: Final[Mapping[str, Any]] = {
    "weight": 100,
    "podAffinityTerm": {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "slurm-operator-webhook"}},
    },
}
"""Preferred alone: an update of the chart starts a third pod before it ends one, on two system nodes."""
VALUES: Final[Mapping[str, Any]] = {
    # Helm makes the webhook's certificate: the stack has no cert-manager.
    "certManager": {"enabled": False},
    "operator": {
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}
    },
    "webhook": {
        # Asked before a pod of any namespace is bound to a node: without one that answers, none starts
        # (SlinkyProject/slurm-operator#189). All replicas serve: only controllers wait for the lease.
        "replicas": 2,
        "pdb": {"enabled": True, "minAvailable": 1},
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_APART]}},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
    },
}


class SlurmOperatorArgs(TypedDict):
    """Arguments of `SlurmOperator`."""

    control_plane: PlatformNetwork
    """Paths by which the API server calls webhooks."""


class SlurmOperator(Component):
    """The operator and its kinds, in a closed namespace. Objects of these kinds come after it."""

    namespace: pulumi.Output[str]
    """Namespace of the operator; dependents come after the release."""

    def __init__(self, name: str, args: SlurmOperatorArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        space = charts()[CHART].namespace
        fence = controllers(f"{name}-fence", space, PORTS, args["control_plane"], self.child)
        inside = self.child(pulumi.ResourceOptions(depends_on=fence))
        # Templates of a chart of their own: Helm upgrades them with it, and deletes them with it.
        defined = release(f"{name}-definitions", DEFINITIONS, {}, inside)
        after_kinds = self.child(pulumi.ResourceOptions(depends_on=[*fence, defined]))
        installed = release(f"{name}-operator", CHART, VALUES, after_kinds)
        self.namespace = after(pulumi.Output.from_input(space), [installed])
        self.register_declared()
