"""The planned steps of a preview, from its events, for any cloud."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pulumi.automation.events import EngineEvent, StepEventMetadata

from infra.engine.progress import is_component
from infra.engine.stack import OnEvent, OperationOutcome

# A replacement has three events: the whole, and the creation and deletion that it consists of.
_PARTS = ("create-replacement", "delete-replaced", "discard", "discard-replaced")
_STEADY = ("same", "read", "refresh")


@dataclass(frozen=True)
class PlannedStep:
    """The planned operation on one resource."""

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
    retained: bool = False
    """Whether a deletion, also that of a replacement, leaves the resource in the cloud."""


class PreviewPlan:
    """Listens to an operation and stores its steps by URN, in the order of events."""

    def __init__(self) -> None:
        self._steps: dict[str, PlannedStep] = {}
        self._kept: dict[str, tuple[str, str]] = {}

    @property
    def steps(self) -> list[PlannedStep]:
        """The steps that change a resource; components, which exist only in the state, are left out."""
        return list(self._steps.values())

    @property
    def kept(self) -> list[tuple[str, str]]:
        """Type and name of each resource that exists before and after."""
        return list(self._kept.values())

    def listening(
        self, operation: Callable[[OnEvent], OperationOutcome]
    ) -> Callable[[OnEvent], OperationOutcome]:
        """Wrap an operation, so that its events are stored here, too."""

        def run(on_event: OnEvent) -> OperationOutcome:
            def take(event: EngineEvent) -> None:
                if event.resource_pre_event is not None:
                    self._take(event.resource_pre_event.metadata)
                on_event(event)

            return operation(take)

        return run

    def _take(self, step: StepEventMetadata) -> None:
        operation = str(getattr(step.op, "value", step.op))
        if operation in _PARTS or is_component(step.urn):
            return
        name = step.urn.rsplit("::", 1)[-1]
        if operation in (*_STEADY, "update"):
            self._kept[step.urn] = step.type, name
        if operation in _STEADY:
            return
        state = step.new or step.old
        paths = step.detailed_diff or dict.fromkeys(step.diffs or ())
        inputs, before = (dict(one.inputs or {}) if one else {} for one in (state, step.old))
        retained = bool(step.old and step.old.retain_on_delete)
        changed = tuple(sorted(paths))
        self._steps[step.urn] = PlannedStep(operation, step.type, name, changed, inputs, before, retained)
