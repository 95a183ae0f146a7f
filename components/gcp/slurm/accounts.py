"""Accounts of teams, which the login node loads into the accounting data base."""

from typing import Any, TypedDict

import pulumi
from pulumi import dynamic

from components.base import Component, Options
from components.jobs.login_script import ScriptProvider
from infra.jobs.gcp.login_node import LoginNode
from infra.jobs.login_jobs import ScriptRunner


class GcpSlurmAccountsArgs(TypedDict):
    """Login node and scripts."""

    project: str
    """Id of the project."""
    stack: str
    """Name of the stack, which labels its login node."""
    cluster: pulumi.Input[str]
    """Name of the cluster; another one loads the accounts again."""
    script: str
    """Script of bash that loads them as root, and may run again."""


class GcpSlurmAccounts(Component):
    """A script that has run on the login node; another script, or another cluster, runs it again."""

    loaded: pulumi.Output[str]
    """Digest of the script; known once the accounts are loaded."""

    def __init__(self, name: str, args: GcpSlurmAccountsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        ran = _Script(LoginScriptProvider(), name, {**args, "loaded": None}, self.child())
        self.loaded = ran.loaded
        self.register_declared()


class LoginScriptProvider(ScriptProvider):
    """Runs the script on the login node of Cluster Director."""

    inputs = ("project", "stack", "cluster", "script")

    def node(self, props: dict[str, Any]) -> ScriptRunner:
        """The login node."""
        return LoginNode(props["project"], props["stack"])


class _Script(dynamic.Resource, module="trainstack", name="LoginScript"):
    loaded: pulumi.Output[str]
