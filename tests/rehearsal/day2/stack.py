"""The shipped stack with the real engine in the emulated clouds, with a program that runs in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from pulumi import automation

from infra import outputs
from infra.engine.install import require
from infra.engine.plan import Plan, Step
from rehearsal.client import Rehearsal
from stacks import compose
from tests.rehearsal.day2.changes import Edit, quickly
from tests.stacks.composition.composed import STACK, stack_spec

PAIR = ("medium", "aws")


def select(rehearsal: Rehearsal, program: Callable[[], None]) -> automation.Stack:
    """The stack of a home, with this program."""
    environment = rehearsal.environment()
    options = automation.LocalWorkspaceOptions(
        env_vars=environment,
        project_settings=automation.ProjectSettings(
            name="trainstack",
            runtime="python",
            backend=automation.ProjectBackend(url=environment["PULUMI_BACKEND_URL"]),
        ),
        pulumi_command=automation.PulumiCommand(root=str(Path(require().path).parents[1])),
    )
    return automation.create_or_select_stack(STACK, project_name="trainstack", program=program, opts=options)


def edited(*edits: Edit) -> Callable[[], None]:
    """The program of the shipped stack after edits of its spec."""

    def change(spec: Any) -> None:
        for edit in (quickly, *edits):
            edit(spec)

    spec = stack_spec(PAIR, change)
    return lambda: outputs.export(compose(spec))


def planned(rehearsal: Rehearsal, *edits: Edit) -> list[Step]:
    """What an `up` after the edits would do."""
    stack, plan = select(rehearsal, edited(*edits)), Plan()
    cast(Any, plan.listening(lambda on_event: cast(Any, stack.preview(on_event=on_event))))(lambda _: None)
    return plan.steps
