"""The APIs of a project that a stack uses."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi_gcp as gcp

from components.base import Component, Options


class GcpApisArgs(TypedDict):
    """The APIs to enable."""

    names: Sequence[str]
    """Names of services, such as `container.googleapis.com`."""


class GcpApis(Component):
    """APIs that are enabled before they are needed, and stay enabled when the stack is deleted.

    Others in the project may use them, too, and disabling one deletes its resources. The deployer needs
    `serviceusage.services.enable`; the API `serviceusage.googleapis.com` itself must be enabled already.
    *Untested in a real project.*
    """

    def __init__(self, name: str, args: GcpApisArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        for api in args["names"]:
            gcp.projects.Service(
                f"{name}-{api.partition('.')[0]}", service=api, disable_on_destroy=False, opts=self.child()
            )
        self.register_declared()
