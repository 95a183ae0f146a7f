"""Engine with less overhead, for tests that neither kill nor measure it."""

import copy
import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pulumi import automation
from pulumi.automation._stack import StackInitMode
from pulumi.runtime import resource
from pulumi.runtime.proto.source_pb2 import StackTrace

from infra.engine.install import require
from stacks import sdk

# Before and after each resource the engine writes all of them, unless it is configured to write them once:
# 34 of 42 s of its processor time for 517 resources of dev-aws (pulumi v3.259.0, pkg/backend/snapshot.go,
# `unsafeServiceLoop`). People's deployments and rehearsals keep every checkpoint. A tenth of the rest is Go's
# collector of garbage.
FRUGAL = {"PULUMI_SKIP_CHECKPOINTS": "true", "GOGC": "400"}
_SECRET = "[secret]"

Program = Callable[[], None]


class FrugalStack(automation.Stack):
    """A stack whose commands read secrets where there are any: the key is 0.4 s of processor time away."""

    def running(self, program: Program) -> "FrugalStack":
        """The same stack with another program; both may be used."""
        other = copy.copy(self)
        other.workspace = copy.copy(self.workspace)
        other.workspace.program = program
        return other

    def info(self, show_secrets: bool = False) -> automation.UpdateSummary | None:
        """The last update; the settings in it are not needed."""
        return super().info(show_secrets=False)

    def resources(self) -> list[dict[str, Any]]:
        """Those of the state."""
        return list((self.export_stack().deployment or {}).get("resources") or [])

    def outputs(self) -> automation.OutputMap:
        """Of the last `up`."""
        command, place = ["stack", "output", "--json", "--stack", self.name], self.workspace
        shown = _cli().run(command, place.work_dir, place.env_vars).stdout
        if _SECRET in shown:
            return super().outputs()
        return {key: automation.OutputValue(value, secret=False) for key, value in json.loads(shown).items()}


@functools.cache
def _cli() -> automation.PulumiCommand:
    """The CLI; a new object asks it for its version."""
    return automation.PulumiCommand(root=str(Path(require().path).parents[1]))


def select(environment: Mapping[str, str], project: str, stack: str, program: Program) -> FrugalStack:
    """A stack with a program that runs in this process; `environment` is the engine's."""
    sdk.without_debug_messages()
    sdk.with_short_searches()
    sdk.with_short_checks()
    resource._get_stack_trace = StackTrace  # an eighth of a program's time, and more below a test's own calls
    backend = automation.ProjectBackend(url=environment["PULUMI_BACKEND_URL"])
    settings = automation.ProjectSettings(name=project, runtime="python", backend=backend)
    workspace = automation.LocalWorkspace(
        program=program, env_vars=environment, project_settings=settings, pulumi_command=_cli()
    )
    return FrugalStack(stack, workspace, StackInitMode.CREATE_OR_SELECT)
