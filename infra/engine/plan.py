"""The planned steps of a preview, from its events, for any cloud."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pulumi.automation.events import EngineEvent, StepEventMetadata

from infra.engine.progress import is_component, short
from infra.engine.stack import OnEvent, OperationOutcome, plain
from infra.errors import MAY_REPLACE

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


@dataclass(frozen=True)
class DriftStep:
    """A resource that differs from its state."""

    operation: str
    """`update`, or `delete` where it does not exist any more."""
    type: str
    name: str
    changed: tuple[str, ...]
    """The names of the properties that differ."""


class RefreshPlan:
    """Listens to a refresh and stores what it finds, by URN."""

    def __init__(self) -> None:
        self._steps: dict[str, DriftStep] = {}

    @property
    def steps(self) -> list[DriftStep]:
        """The resources that differ."""
        return list(self._steps.values())

    def listening(
        self, operation: Callable[[OnEvent], OperationOutcome]
    ) -> Callable[[OnEvent], OperationOutcome]:
        """Wrap an operation, so that its events are stored here, too."""

        def run(on_event: OnEvent) -> OperationOutcome:
            def take(event: EngineEvent) -> None:
                if event.res_outputs_event is not None:
                    self._take(event.res_outputs_event.metadata)
                on_event(event)

            return operation(take)

        return run

    def _take(self, step: StepEventMetadata) -> None:
        operation = str(getattr(step.op, "value", step.op))
        if operation not in ("update", "delete") or is_component(step.urn):
            return
        paths = step.detailed_diff or dict.fromkeys(step.diffs or ())
        name = step.urn.rsplit("::", 1)[-1]
        self._steps[step.urn] = DriftStep(operation, step.type, name, tuple(sorted(paths)))


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(one)


def may_replace(event: EngineEvent) -> dict[str, str]:
    """The URN of an update that may be a replacement, with the reason; empty for every other event."""
    warning = event.diagnostic_event
    if warning is not None and warning.urn and plain(warning).startswith(MAY_REPLACE):
        return {warning.urn: plain(warning)}
    return {}


class PreviewPlan:
    """Listens to an operation and stores its steps by URN, in the order of events."""

    def __init__(self) -> None:
        self._steps: dict[str, PlannedStep] = {}
        self._kept: dict[str, tuple[str, str]] = {}
        self._unsure: dict[str, str] = {}

    @property
    def unsure(self) -> list[str]:
        """Updates that may be replacements, with the reason."""
        return [f"{short(urn)} {text}" for urn, text in self._unsure.items()]

    @property
    def steps(self) -> list[PlannedStep]:
        """The steps that change a resource; components, which exist only in the state, are left out."""
        return list(self._steps.values())

    @property
    def digest(self) -> str:
        """Digest of the steps and their inputs, to compare two previews; the engine has masked secrets."""
        rows = {urn: [one.operation, one.changed, one.inputs, one.before] for urn, one in self._steps.items()}
        text = json.dumps(rows, sort_keys=True, default=repr)
        for name in self._drawn_names():
            text = text.replace(name, name.rpartition("-")[0])
        return hashlib.sha256(text.encode()).hexdigest()

    def _drawn_names(self) -> set[str]:
        """Names that providers draw anew in every preview: that in the program and 7 or 8 characters."""
        found: set[str] = set()
        for one in self._steps.values():
            form = re.compile(rf"{re.escape(one.name)}-[0-9a-z]{{7,8}}", re.IGNORECASE)
            found |= {text for text in _texts(one.inputs) if form.fullmatch(text)}
        return found

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
                self._unsure |= may_replace(event)
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
