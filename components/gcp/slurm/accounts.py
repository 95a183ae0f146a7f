"""Accounts of teams, which the login node loads into the accounting data base."""

from typing import Any, TypedDict

import pulumi
from pulumi import dynamic

from components.base import Component, Options
from components.jobs.login_script import run_script
from infra.jobs.gcp.login_node import LoginNode

_INPUTS = ("project", "stack", "cluster", "script")


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


class LoginScriptProvider(dynamic.ResourceProvider):
    """Runs the script when the resource is created or changed; deletion leaves the accounts."""

    serialize_as_secret_always = False

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """A change of inputs runs it again."""
        return dynamic.DiffResult(changes=any(olds.get(name) != news.get(name) for name in _INPUTS))

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Run it. Raises LoginScriptError."""
        found = _run(props)
        return dynamic.CreateResult(found["loaded"][:16], found)

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Run it. Raises LoginScriptError."""
        return dynamic.UpdateResult(_run(news))


class _Script(dynamic.Resource, module="trainstack", name="LoginScript"):
    loaded: pulumi.Output[str]


def _run(props: dict[str, Any]) -> dict[str, Any]:
    node = LoginNode(props["project"], props["stack"])
    return {**props, "loaded": run_script(node, props["script"])}
