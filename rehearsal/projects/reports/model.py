"""The record of a rehearsal, from which every form of a report is made."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pulumi.automation.events import EngineEvent, StepEventMetadata

from infra.engine.plan import may_replace
from infra.engine.progress import short
from infra.engine.stack import OperationOutcome
from rehearsal.core.packages import PACKAGES
from rehearsal.core.rules.pinning import note
from rehearsal.core.schema import sdk_version
from rehearsal.projects import coverage
from rehearsal.projects.assertions import AssertionVerdict
from rehearsal.projects.coverage import Standing
from rehearsal.projects.observed import Observed, SeenChange, SeenResource

# A replacement has three events: the whole, and the creation and deletion that it consists of.
_GONE = ("delete", "delete-replaced", "discard", "discard-replaced", "remove-pending-replace")
_PROVIDER = "pulumi:providers:"
_CHANGING = ("create", "update", "replace", "delete")


@dataclass
class RehearsalStep:
    """One operation of a rehearsal; listens to the events of the engine."""

    name: str
    outcome: OperationOutcome | None = None
    """None: not tried."""
    changes: list[SeenChange] = field(default_factory=list)
    types: Counter[str] = field(default_factory=Counter)
    """Resource types that the operation met, with the number of resources."""
    resources: dict[str, SeenResource] = field(default_factory=dict)
    """By URN: resources that exist after it."""
    outputs: Mapping[str, object] = field(default_factory=dict)
    pinned: set[tuple[str, str]] = field(default_factory=set)
    """Package and version of providers that the program pins."""
    unsure: dict[str, str] = field(default_factory=dict)
    """By URN: the reason why an update may be a replacement."""

    def take(self, event: EngineEvent) -> None:
        """Process one event."""
        if event.resource_pre_event:
            self._planned(event.resource_pre_event.metadata)
        if event.res_outputs_event:
            self._keep(event.res_outputs_event.metadata)
        self.unsure |= may_replace(event)

    def _planned(self, made: StepEventMetadata) -> None:
        operation = str(getattr(made.op, "value", made.op))
        if made.new is not None and made.type.startswith(_PROVIDER):
            version = str((made.new.inputs or {}).get("version") or "")
            self.pinned.add((made.type.removeprefix(_PROVIDER), version))
        if made.provider and coverage.is_resource(made.type) and made.urn not in self.resources:
            self.types[made.type] += 1
        if operation in _CHANGING and not made.type.startswith("pulumi:"):
            paths = made.detailed_diff or dict.fromkeys(made.diffs or ())
            self.changes.append(
                SeenChange(operation, made.type, made.urn.rpartition("::")[2], tuple(sorted(paths)))
            )
        self._keep(made)

    def _keep(self, made: StepEventMetadata) -> None:
        operation = str(getattr(made.op, "value", made.op))
        if made.type == "pulumi:pulumi:Stack":
            self.outputs = dict(made.new.outputs or {}) if made.new else self.outputs
        elif operation in ("delete", "remove-pending-replace"):
            self.resources.pop(made.urn, None)
        elif made.new is not None and made.provider and operation not in _GONE:
            values = {**(made.new.inputs or {}), **(made.new.outputs or {})}
            self.resources[made.urn] = SeenResource(made.type, made.urn.rpartition("::")[2], values)


@dataclass
class ProjectReport:
    """Results of a project: the steps, what they left in the emulated clouds, and the assertions."""

    project: str
    stack: str
    steps: Sequence[RehearsalStep]
    left: int = 0
    """Resources that `destroy` did not delete."""
    assertions: Sequence[AssertionVerdict] = ()
    requires: Sequence[str] = ()
    """Requirements of the program that the installed packages do not meet."""
    unused: Mapping[str, int] = field(default_factory=dict)
    """Resources of a seed that a rehearsal does not know, by type: left out."""
    secret: Sequence[str] = ()
    """Resources of a seed of which only secrets may change: they were left out."""

    @property
    def types(self) -> Mapping[str, int]:
        """Resource types with the largest number of resources that a step met, and what was left out."""
        found: Counter[str] = Counter()
        for one in self.steps:
            found |= one.types
        return found + Counter(self.unused)

    @property
    def standings(self) -> Mapping[Standing, Mapping[str, int]]:
        """The types by what a rehearsal knows of them."""
        return coverage.standings(self.types)

    @property
    def pins(self) -> list[str]:
        """Notes about other versions of emulated packages than the installed one, of all steps."""
        found = sorted({pin for one in self.steps for pin in one.pinned if pin[0] in PACKAGES})
        notes = (note(package, version, sdk_version(package) or "") for package, version in found)
        return [one for one in notes if one]

    @property
    def errors(self) -> list[str]:
        """Messages of the engine, of all steps."""
        return [error for one in self.steps if one.outcome for error in one.outcome.errors]

    @property
    def unsure(self) -> list[str]:
        """Updates that may be replacements, with the reason, of all steps."""
        found = {urn: reason for one in self.steps for urn, reason in one.unsure.items()}
        return [f"{short(urn)} {reason}" for urn, reason in found.items()]

    @property
    def restless(self) -> Sequence[SeenChange]:
        """Changes of the second `up`, although nothing was changed."""
        return next((one.changes for one in self.steps if one.name == UNCHANGED), ())

    @property
    def passed(self) -> bool:
        """True when all steps succeeded, nothing changed without cause, nothing is left, assertions hold."""
        done = all(one.outcome is not None and one.outcome.succeeded for one in self.steps)
        steady = all(
            one.outcome is None or one.outcome.changed == 0 for one in self.steps if one.name == UNCHANGED
        )
        return done and steady and not self.left and all(one.passed for one in self.assertions)

    @property
    def observed(self) -> Observed:
        """The end of the first step, and the changes of all but `destroy`, which assertions judge."""
        first = self.steps[0]
        changes = [change for one in self.steps if one.name != DESTROY for change in one.changes]
        return Observed(list(first.resources.values()), first.outputs, changes)


UP, UNCHANGED, DESTROY, PREVIEW = "up", "unchanged up", "destroy", "preview"
