"""Access of members to the tracking server by a port-forward through the API server."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi

from components.base import Component, Options
from components.kubernetes.access import bound_role, may
from components.kubernetes.people import SubjectArgs, subjects
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

    def __init__(self, name: str, args: MlflowVisitorsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        rules = [
            may("", "services", "get", names=[NAME]),
            may("", "pods", "get", "list"),
            may("", "pods/portforward", "create"),
        ]
        people = subjects(args["people"])
        bound_role(name, "visitors", rules, people, self.child, namespace=args["namespace"])
        self.register_declared()
