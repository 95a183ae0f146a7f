"""Access of members to the tracking server by a port-forward through the API server."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi
from pulumi_kubernetes import meta, rbac

from components.base import Component
from components.kubernetes.people import RBAC, SubjectArgs, subjects
from components.kubernetes.tracking.pod import NAME


class MlflowVisitorsArgs(TypedDict):
    """Arguments of `MlflowVisitors`."""

    namespace: pulumi.Input[str]
    """The server's namespace."""
    people: Sequence[SubjectArgs]
    """Members with access."""


class MlflowVisitors(Component):
    """The permission for `kubectl port-forward service/mlflow` only: the server itself requires a login.

    kubectl finds a pod of the Service (k8s.io/kubectl pkg/polymorphichelpers/attachablepodforobject.go) and
    opens a connection to it. The readable pod has the names of its secrets, not their values.
    """

    def __init__(
        self, name: str, args: MlflowVisitorsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        metadata = meta.v1.ObjectMetaArgs(name="visitors", namespace=args["namespace"])
        role = rbac.v1.Role(
            f"{name}-role",
            metadata=metadata,
            rules=[
                rbac.v1.PolicyRuleArgs(
                    api_groups=[""], resources=["services"], resource_names=[NAME], verbs=["get"]
                ),
                rbac.v1.PolicyRuleArgs(api_groups=[""], resources=["pods"], verbs=["get", "list"]),
                rbac.v1.PolicyRuleArgs(api_groups=[""], resources=["pods/portforward"], verbs=["create"]),
            ],
            opts=self.child(),
        )
        rbac.v1.RoleBinding(
            f"{name}-binding",
            metadata=metadata,
            role_ref=rbac.v1.RoleRefArgs(api_group=RBAC, kind="Role", name="visitors"),
            subjects=subjects(args["people"]),
            opts=self.child(pulumi.ResourceOptions(depends_on=[role])),
        )
        self.register_outputs({})
