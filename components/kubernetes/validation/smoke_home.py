"""Shared objects of a cluster's validations: the account of their pods, the watchers' namespace."""

from typing import TypedDict

import pulumi
from pulumi_kubernetes import core, meta

from components.base import Component, Options
from components.kubernetes.validation import watcher
from components.ordering import after

SERVICE_ACCOUNT = "smoke"


class SmokeHomeArgs(TypedDict):
    """Arguments of `SmokeHome`."""

    namespace: pulumi.Input[str]
    """Namespace of the validations."""


class SmokeHome(Component):
    """The account of the pods of all validations, and the closed namespace of the Jobs that watch them."""

    namespace: pulumi.Output[str]
    """Namespace of the validations; dependents come after these objects."""

    def __init__(self, name: str, args: SmokeHomeArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        account = core.v1.ServiceAccount(
            f"{name}-account",
            metadata=meta.v1.ObjectMetaArgs(name=SERVICE_ACCOUNT, namespace=args["namespace"]),
            automount_service_account_token=False,
            opts=self.child(),
        )
        rights = watcher.rights(name, args["namespace"], self.child)
        self.namespace = after(pulumi.Output.from_input(args["namespace"]), [account, *rights])
        self.register_declared()
