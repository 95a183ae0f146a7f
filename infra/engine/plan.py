"""What a preview plans: the steps that its events tell, without knowledge of any cloud."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pulumi.automation.events import EngineEvent, StepEventMetadata

from infra.engine.progress import is_component
from infra.engine.stack import OnEvent, OperationOutcome

# A replacement is told three times: as a whole, and as the creation and the deletion that it consists of.
_PARTS = ("create-replacement", "delete-replaced", "discard", "discard-replaced")
_STEADY = ("same", "read", "refresh")


@dataclass(frozen=True)
class PlannedStep:
    """What is to happen to one resource."""

    operation: str
    """`create`, `update`, `replace` or `delete`."""
    type: str
    name: str
    """Its name in the program."""
    changed: tuple[str, ...]
    """The paths of the inputs that differ."""
    inputs: Mapping[str, Any]
    """Its inputs after the step, before it where it is deleted."""
    before: Mapping[str, Any] = field(default_factory=dict)
    """Its inputs before the step."""


class PreviewPlan:
    """Listens to an operation and keeps its steps by URN, in the order in which the engine tells them."""

    def __init__(self) -> None:
        self._steps: dict[str, PlannedStep] = {}
        self._kept: dict[str, tuple[str, str]] = {}

    @property
    def steps(self) -> list[PlannedStep]:
        """The steps that change a resource; components, which exist only in the state, are left out."""
        return list(self._steps.values())

    @property
    def kept(self) -> list[tuple[str, str]]:
        """Type and name of each resource that is there before and afterwards."""
        return list(self._kept.values())

    def listening(
        self, operation: Callable[[OnEvent], OperationOutcome]
    ) -> Callable[[OnEvent], OperationOutcome]:
        """The same operation; its events come here too."""

        def run(on_event: OnEvent) -> OperationOutcome:
            def take(event: EngineEvent) -> None:
                if event.resource_pre_event is not None:
                    self._take(event.resource_pre_event.metadata)
                on_event(event)

            return operation(take)

        return run

    def _take(self, told: StepEventMetadata) -> None:
        operation = str(getattr(told.op, "value", told.op))
        if operation in _PARTS or is_component(told.urn):
            return
        name = told.urn.rsplit("::", 1)[-1]
        if operation in (*_STEADY, "update"):
            self._kept[told.urn] = told.type, name
        if operation in _STEADY:
            return
        state = told.new or told.old
        paths = told.detailed_diff or dict.fromkeys(told.diffs or ())
        inputs, before = (dict(one.inputs or {}) if one else {} for one in (state, told.old))
        self._steps[told.urn] = PlannedStep(operation, told.type, name, tuple(sorted(paths)), inputs, before)
