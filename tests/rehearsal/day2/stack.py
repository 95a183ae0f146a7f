"""The shipped stack with the real engine in the emulated clouds, with a program that runs in this process."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from infra.engine.plan import PlannedStep, PreviewPlan
from infra.stackspec import StackSpec
from rehearsal.client import Rehearsal
from stacks.__main__ import deploy
from tests.rehearsal.day2.changes import ENDING_ON_AWS, ON_AWS, Edit, quickly
from tests.rehearsal.day2.changes_gcp import ENDING_ON_GCP, ON_GCP
from tests.rehearsal.frugal import FRUGAL, FrugalStack, Program, select
from tests.stacks.composition.composed import STACK, Pair, stack_spec
from trainstack.plans.drains import drains

GOLDEN = Path(__file__).with_name("golden")
CACHE = Path(__file__).resolve().parents[3] / ".trainstack" / "cache"


@dataclass(frozen=True)
class Life:
    """A deployed stack to change."""

    pair: Pair
    edits: Mapping[str, Edit]
    ending: Mapping[str, set[str]]
    """Changes that end nodes, with their pools."""

    def file(self, name: str) -> Path:
        """The reviewed list of effects of a change."""
        return GOLDEN / self.pair[1] / f"{name.lower().replace(' ', '-')}.txt"

    def spec(self, *edits: Edit) -> StackSpec:
        """The spec of the shipped stack after edits."""

        def change(spec: Any) -> None:
            for edit in (quickly, *edits):
                edit(spec)

        return stack_spec(self.pair, change)

    def program(self, *edits: Edit) -> Program:
        """The program of the shipped stack after edits of its spec."""
        spec = self.spec(*edits)
        return lambda: deploy(spec)

    def planned(self, stack: FrugalStack, *edits: Edit) -> list[PlannedStep]:
        """Steps of an `up` after the edits."""
        stack, plan = stack.running(self.program(*edits)), PreviewPlan()
        cast(Any, plan.listening(lambda on_event: cast(Any, stack.preview(on_event=on_event))))(
            lambda _: None
        )
        return plan.steps

    def plans(self, stack: FrugalStack) -> dict[str, list[PlannedStep]]:
        """Steps of an `up` after each of the edits."""
        return {name: self.planned(stack, edit) for name, edit in self.edits.items()}

    @contextmanager
    def deployed(self, folder: Path) -> Iterator[FrugalStack]:
        """The stack, deployed in a home below the folder; destroyed afterwards."""
        CACHE.mkdir(parents=True, exist_ok=True)
        (folder / "cache").symlink_to(CACHE)
        home = Rehearsal(folder / "rehearsal")
        try:
            stack = selected(home, self.program(), **FRUGAL)
            stack.up()
            yield stack
        finally:
            home.stop()


AWS = Life(("medium", "aws"), ON_AWS, ENDING_ON_AWS)
GCP = Life(("medium", "gcp"), ON_GCP, ENDING_ON_GCP)


def ended(steps: list[PlannedStep]) -> set[str]:
    """The groups whose nodes end."""
    return {line.partition(":")[0] for line in drains(steps)}


def selected(rehearsal: Rehearsal, program: Program, **variables: str) -> FrugalStack:
    """The stack of a home, with this program; `variables` are the engine's."""
    return select(rehearsal.environment() | variables, "trainstack", STACK, program)
