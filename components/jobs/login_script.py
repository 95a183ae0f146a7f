"""A script that has run on the login node of a Slurm system, as a resource."""

import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypedDict

import pulumi
from pulumi import dynamic

from components.base import Component, Options
from infra.errors import UserError
from infra.jobs.login_jobs import ScriptRunner
from infra.jobs.login_pod import LoginPod
from infra.jobs.service import LostError

# The first connection may come before the login node is ready: images are pulled, guest agents start.
_ATTEMPTS, _PAUSE_S = 30, 20


class LoginScriptError(Exception):
    """The script did not run, with the reason."""

    # Pulumi prints the module before the name, which is of no use to users.
    __module__ = "builtins"


def run_script(node: ScriptRunner, script: str, pause: Callable[[float], None] = time.sleep) -> str:
    """Run a script that loads accounts; returns its digest. Raises LoginScriptError."""
    sys.tracebacklimit = 0  # Pulumi prints tracebacks of providers
    lost = ""
    try:
        for _ in range(_ATTEMPTS):
            try:
                node.run(script, what="load accounts")
                break
            except LostError as error:
                lost = str(error)
                pause(_PAUSE_S)
        else:
            raise LoginScriptError(f"accounts were not loaded: {lost}")
    except UserError as error:
        text = "; ".join(f"{one.rule} {one.fix}".strip() for one in error.problems)
        raise LoginScriptError(f"accounts were not loaded: {text}") from None
    return hashlib.sha256(script.encode()).hexdigest()


class ScriptProvider(dynamic.ResourceProvider):
    """Runs the script when the resource is created or changed; deletion leaves what it did."""

    serialize_as_secret_always = False
    inputs: ClassVar[Sequence[str]]
    """Inputs whose change runs it again."""

    def node(self, props: dict[str, Any]) -> ScriptRunner:
        """The login node. Each home of Slurm has its own."""
        raise NotImplementedError

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """A change of inputs runs it again."""
        return dynamic.DiffResult(changes=any(olds.get(name) != news.get(name) for name in self.inputs))

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Run it. Raises LoginScriptError."""
        found = self._ran(props)
        return dynamic.CreateResult(found["loaded"][:16], found)

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Run it. Raises LoginScriptError."""
        return dynamic.UpdateResult(self._ran(news))

    def _ran(self, props: dict[str, Any]) -> dict[str, Any]:
        return {**props, "loaded": run_script(self.node(props), props["script"])}


class LoginPodScriptArgs(TypedDict):
    """Login pod and script."""

    kubeconfig: pulumi.Input[str]
    """Text of the cluster's kubeconfig, without a secret."""
    system: pulumi.Input[str]
    """Name of the login pod's Deployment; another one runs the script again."""
    script: str
    """Script of bash that runs as root, and may run again."""


class LoginPodScript(Component):
    """A script that has run in the login pod; another script runs again."""

    loaded: pulumi.Output[str]
    """Digest of the script; known once it has run."""

    def __init__(self, name: str, args: LoginPodScriptArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        ran = _Script(PodScriptProvider(), name, {**args, "loaded": None}, self.child())
        self.loaded = ran.loaded
        self.register_declared()


class PodScriptProvider(ScriptProvider):
    """Runs the script in the login pod."""

    inputs = ("system", "script")

    def node(self, props: dict[str, Any]) -> ScriptRunner:
        """The login pod."""
        return LoginPod(props["kubeconfig"])


class _Script(dynamic.Resource, module="trainstack", name="LoginPodScript"):
    loaded: pulumi.Output[str]
