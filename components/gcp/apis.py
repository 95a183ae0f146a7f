"""The APIs of a project that a stack uses."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component


class GcpApisArgs(TypedDict):
    """Which APIs."""

    names: Sequence[str]
    """Names of services, such as `container.googleapis.com`."""


class GcpApis(Component):
    """APIs that are switched on before anything needs them, and stay on when the stack goes.

    Others in the project may use them, too, and switching one off deletes what belongs to it. Who deploys
    needs `serviceusage.services.enable`; the API `serviceusage.googleapis.com` itself has to be on already.
    *Untested in a real project.*
    """

    def __init__(self, name: str, args: GcpApisArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        for api in args["names"]:
            gcp.projects.Service(
                f"{name}-{api.partition('.')[0]}",
                service=api,
                disable_on_destroy=False,
                opts=self.child(),
            )
        self.register_outputs({})
