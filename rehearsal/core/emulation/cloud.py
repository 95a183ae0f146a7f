"""Table-driven cloud: creates, updates and deletes resources by rows, hooks and rules, in one state."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic

from rehearsal.core.emulation.columns import covers
from rehearsal.core.emulation.differences import PropertyDifference, StateComparison, given_still
from rehearsal.core.emulation.generic import Forms, plausible
from rehearsal.core.emulation.import_ids import imported
from rehearsal.core.emulation.naming import named, was_automatic
from rehearsal.core.emulation.refusals import (
    keep_name,
    leave,
    refuse_duplicate,
    refuse_kept,
    refuse_protected,
    refuse_used,
    store,
)
from rehearsal.core.emulation.replacing import replacing
from rehearsal.core.emulation.shape import fill_in, foreseen, identifiers, importable, is_programs
from rehearsal.core.emulation.site import Hooks, S
from rehearsal.core.emulation.table import Row, Table
from rehearsal.core.in_flight import InFlight
from rehearsal.core.model import (
    UNKNOWN,
    Call,
    CheckFailure,
    Diff,
    EmulatedCloud,
    InitFailedError,
    Properties,
    Record,
    RefusalError,
)
from rehearsal.core.properties import at, carried, head, without_none
from rehearsal.core.rules.model import Book
from rehearsal.core.rules.pinning import judged
from rehearsal.core.rules.wording import may_replace, reason, refusal, unknown_type
from rehearsal.core.schema import ResourceSchema, Schemas, is_map
from rehearsal.core.state import State
from rehearsal.core.validate import validate

# A missing resource is given up after so long without another request: a program may work in between.
_PATIENCE_S = 15.0


class TableCloud(EmulatedCloud, ABC, Generic[S]):
    """Serves every provider of one package of every engine; thread-safe.

    A subclass supplies its vocabulary: the attributes and abstract methods below.
    """

    table: ClassVar[Table]
    link: ClassVar[str]
    """The property that holds the link of a row: `arn` or `selfLink`."""
    labels: ClassVar[tuple[str, ...]]
    """The outputs that hold a resource's tags or labels together with those of the provider."""
    in_place: ClassVar[frozenset[str]]
    """Properties that no type replaces: its tags or labels."""
    foreknown: ClassVar[frozenset[str]]
    """Outputs that a preview knows although the provider computes them."""
    forms: ClassVar[Forms]
    """Formats of the outputs of types that no table describes."""
    missing: ClassVar[tuple[str, str]]
    exists: ClassVar[tuple[str, str]]
    """Code and message for rows without their own."""
    rejected: ClassVar[str]
    """Code of a refusal by a rule without its own."""
    book: Book[Any]
    hooks: Mapping[str, Hooks[S]]

    def __init__(self, state: State, schemas: Schemas, home: Path) -> None:
        self.package = self.table.package
        self.version = schemas.version
        self._state, self._schemas, self._home = state, schemas, home
        self._underway = InFlight()

    # -- vocabulary ------------------------------------------------------------------------------------

    @abstractmethod
    def site(self, call: Call, given: Properties, *, preview: bool = False) -> S:
        """The site of a request with the properties `given`."""

    @abstractmethod
    def labels_of(self, call: Call, inputs: Properties) -> dict[str, Any]:
        """The tags or labels of a resource together with those of its provider."""

    @abstractmethod
    def resolve(self, site: S, row: Row, inputs: Properties) -> dict[str, Record]:
        """Property path -> resource it refers to. Raises RefusalError for the first that does not exist."""

    def identifiers(self, row: Row, id: str, outputs: Properties) -> set[str]:
        """The values by which others may refer to a resource, wherever they are."""
        return identifiers(row, self.link, id, outputs)

    def misplaced(self, call: Call, row: Row, inputs: Properties) -> list[CheckFailure]:
        """Problems that prevent the provider from placing a resource."""
        return []

    def replaces(self, row: Row, path: str, old: Properties, new: Properties) -> bool:
        """Return whether the change at `path` forces a replacement."""
        return replacing(row, path, old, new)

    def protect(self, row: Row, record: Record) -> None:
        """Raise RefusalError for a resource that is protected from deletion."""
        refuse_protected(row, record)

    # -- requests of the engine ------------------------------------------------------------------------

    def replacing_settings(self, old: Properties, new: Properties) -> tuple[str, ...]:
        """None: resources keep their account or project and region."""
        return ()

    def check(
        self, call: Call, old: Properties | None, new: Properties
    ) -> tuple[Properties, list[CheckFailure]]:
        """Fill in automatic names; validate the inputs by schema, place and the rules about inputs alone."""
        schema = self._schemas.resource(call.type)
        inputs = without_none(new)
        if schema is None:
            return inputs, judged(call, self.version, [unknown_type(self.package, self.version, call.type)])
        row = self._row(call)
        field = schema.inputs.get(row.name)
        if field and not field.required and (unnamed := named(row, call, old, inputs)):
            return inputs, [unnamed]
        failures = judged(call, self.version, validate(schema, inputs)) or self.misplaced(call, row, inputs)
        if not failures:
            failures = [
                CheckFailure(violation.path, reason(rule.id, violation))
                for rule, violation in self.book.broken_alone(call.type, inputs)
                if not (rule.general and self._emulated(at(inputs, violation.path)))
            ]
        return inputs, failures

    def _emulated(self, value: Any) -> bool:  # an id of the emulation, whose form is not the service's
        return isinstance(value, str) and bool(self._state.issued(value))

    def diff(
        self, call: Call, id: str, old_inputs: Properties, old_outputs: Properties, new: Properties
    ) -> Diff:
        """Changed paths; those of the row's replace-only properties force a replacement."""
        after = (row := self._row(call)).completed(row.stated(without_none(new)))
        found = self._comparison(call, row).of(row.completed(without_none(old_inputs)), after, old_outputs)
        found = [one for one in found if is_programs(one.path)]
        paths = tuple(one.path for one in found)
        unsaved = (name for name, needed in row.unsaved.items() if name in after and not at(after, needed))
        decided = (name for name in row.decided if name in after and after[name] != old_outputs.get(name))
        paths += tuple(name for name in (*unsaved, *decided) if name not in paths)
        among = {one.path: () if one.guessed else (one.path, *one.inner) for one in found}
        replaces = tuple(
            path
            for path in paths
            if any(self.replaces(row, one, old_inputs, new) for one in among.get(path, (path,)))
        )
        unsure = () if replaces else [one for one in found if self._may_replace(row, one, old_inputs, new)]
        if unsure:
            call.log("warning", may_replace(one.path for one in unsure))
        shared = self.labels[0]
        if not paths and shared in old_outputs:
            same = self.labels_of(call, new) == (old_outputs[shared] or {})
            paths = () if same else (shared,)
        name = row.display_name(new)
        fixed = bool(name) and not was_automatic(name)
        alone = not row.name and bool(row.unique)
        kept = fixed and name == row.display_name(old_inputs)
        return Diff(paths, replaces, delete_before_replace=bool(replaces) and (kept or alone))

    def _may_replace(self, row: Row, one: PropertyDifference, old: Properties, new: Properties) -> bool:
        """Return whether a difference that is shown as an update may be a replacement."""
        paths = (one.path, *one.inner)
        if one.guessed:
            return any(self.replaces(row, path, old, new) for path in paths)
        if row.changes.known or row.known:
            return any(covers(row.changes.may, path) and not row.decides(path) for path in paths)
        return head(one.path) not in self.in_place

    def _comparison(self, call: Call, row: Row) -> StateComparison:
        schema, facts = self._schemas.resource(call.type), row.changes
        computed, maps = facts.computed, frozenset[str]()
        if schema is not None:
            maps = frozenset(name for name, one in schema.inputs.items() if is_map(one.type))
            computed = computed if facts.known else schema.computed - row.defaults.keys()
        return StateComparison(facts, computed, facts.sets.union(row.sets), row.defaults, maps, row.known)

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """Create, after the checks of the service, and wait until it is ready.

        Raises InitFailedError, as the provider does at its time limit, when it does not become ready.
        """
        site, unready = self.site(call, inputs, preview=preview), self._hooks(call).unready
        with self._underway.working():
            called = self._called(site, "create", None, inputs)
            identifier, outputs, record = self._create(site, inputs, called)
        if unready is not None and record is not None:
            why = self._underway.wait(call, lambda: unready(site, record), _PATIENCE_S)
            if why:
                raise InitFailedError(identifier, outputs, [why])
        return identifier, outputs

    def _called(self, site: S, action: str, old: Properties | None, new: Properties) -> Properties:
        """Outputs of the call that a hook makes before an operation. Raises RefusalError."""
        calls = self._hooks(site.call).calls
        return {} if calls is None or site.preview else calls(site, action, old, new)

    def _create(
        self, site: S, inputs: Properties, called: Properties
    ) -> tuple[str, Properties, Record | None]:
        """Id, outputs and record of a new resource; a preview has no id and no record."""
        row, hooks = self._row(site.call), self._hooks(site.call)
        with self._state.transaction():
            used = self.resolve(site, row, inputs)
            self._admit(site, row, inputs)
            identifier, outputs = self._compute(site, row, inputs)
            outputs |= called
            refuse_kept(site, row, identifier, outputs, self.exists)
            if site.preview:
                return "", self._preview_of(row, inputs, outputs), None
            record = store(site, row, identifier, inputs, outputs, self.exists)
            self._settle(row, record, used)
            if hooks.created is not None:
                hooks.created(site, record)
        return identifier, outputs, record

    def read(self, call: Call, id: str, inputs: Properties) -> tuple[Properties, Properties] | None:
        """The resource in the state, whichever engine made it; its id where `id` is a short form of it."""
        site, row = self.site(call, inputs), self._row(call)
        record = imported(site, row, id) if row.imported and not call.remembered else self._get(site, id)
        if record is None:
            return None
        inputs, outputs = self._seen(site, record)
        return inputs, outputs if record.id == id else {**outputs, "id": record.id}

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """Update in place; values computed at creation stay."""
        site, row, hooks = self.site(call, inputs, preview=preview), self._row(call), self._hooks(call)
        schema = self._schemas.resource(call.type)
        before = self._get(site, id)
        called = self._called(site, "update", before.inputs, inputs) if before else {}
        with self._state.transaction():
            record = self._get(site, id)
            if record is None:
                code, message = row.missing or self.missing
                fix = "Run `pulumi refresh` to drop it from the state."
                raise RefusalError(code, message.format(value=id), fix)
            used = self.resolve(site, row, inputs)
            self._admit(site, row, inputs, record)
            gave = given_still(record.inputs, inputs, self._comparison(call, row).computed)
            kept = carried(record.outputs, gave, inputs)
            outputs = {**row.defaults, **kept, **self._labelled(site.call, inputs)}
            changed = hooks.updated(site, record, inputs) if hooks.updated is not None else {}
            outputs = _of_schema(schema, {**outputs, **changed, **called})
            if preview:
                return {**outputs, **{name: UNKNOWN for name in hooks.volatile if name in changed}}
            record = self._state.replace(record, inputs=inputs, outputs=outputs)
            self._settle(row, record, used)
            if hooks.changed is not None:
                hooks.changed(site, record)
        return outputs

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """Delete, unless it is protected or a resource that blocks the deletion refers to it."""
        site, row, hooks = self.site(call, outputs), self._row(call), self._hooks(call)
        before = self._get(site, id)
        if before is not None:
            self._called(site, "delete", before.inputs, before.inputs)
        with self._state.transaction():
            record = self._get(site, id)
            if record is None or leave(site, row, record):
                return
            self.protect(row, record)
            if hooks.deleting is not None:
                hooks.deleting(site, record)
            refuse_used(site, row, record)
            keep_name(site, row, record)
            site.drop_hidden(record)
            self._state.remove(record)
        if hooks.deleted is not None:
            hooks.deleted(site, record)

    # -- the parts of a request ------------------------------------------------------------------------

    def _row(self, call: Call) -> Row:
        schema = self._schemas.resource(call.type)
        return self.table.row(call.type, schema.inputs if schema else ())

    def _hooks(self, call: Call) -> Hooks[S]:
        return self.hooks.get(call.type.removeprefix(f"{self.package}:")) or Hooks()

    def _get(self, site: S, id: str) -> Record | None:
        """The resource of this request; one of the same scope before others with the same id."""
        found = [one for one in self._state.issued(id) if one.id == id and one.type == site.call.type]
        here = [one for one in found if one.scope == site.scope]
        return next(iter(here or (one for one in found if site.reaches(one))), None)

    def _seen(self, site: S, record: Record) -> tuple[Properties, Properties]:
        """Inputs and outputs of a resource that is read; one that no program made has the inputs for one."""
        if record.inputs or record.urn:
            return record.inputs, record.outputs
        return importable(self._schemas.resource(record.type), self._row(site.call), record), record.outputs

    def _admit(self, site: S, row: Row, inputs: Properties, record: Record | None = None) -> None:
        refuse_duplicate(site, row, inputs, record, self.exists)
        for rule, violation in self.book.broken_around(row.token, inputs, site):
            if not rule.advice:
                raise refusal(rule.id, violation, self.rejected)
            site.call.log("warning", reason(rule.id, violation))

    def _compute(self, site: S, row: Row, inputs: Properties) -> tuple[str, Properties]:
        seed = "preview" if site.preview else secrets.token_hex(16)
        schema = self._schemas.resource(row.token)
        outputs: Properties = {**row.defaults, **inputs}
        outputs.update(
            {name: outputs[name].upper() for name in row.upper if isinstance(outputs.get(name), str)}
        )
        outputs = {**_of_schema(schema, site.places), **outputs}
        values = {**site.places, **outputs, **site.template_values}
        identifier = fill_in(row, self.link, seed, outputs, values)
        if schema is not None and not row.known:
            outputs = {**plausible(schema, seed, self.forms, {**values, "id": identifier}), **outputs}
        outputs.update(self._labelled(site.call, inputs))
        more = self._hooks(site.call).outputs
        if more is not None:
            outputs.update(more(site, seed, inputs, {**outputs, "id": identifier}))
        return str(outputs.pop("id", identifier)), _of_schema(schema, outputs)

    def _labelled(self, call: Call, inputs: Properties) -> Properties:
        return dict.fromkeys(self.labels, self.labels_of(call, inputs))

    def _settle(self, row: Row, record: Record, used: dict[str, Record]) -> None:
        self._state.issue(record, self.identifiers(row, record.id, record.outputs))
        self._state.refer(record, used)

    def _preview_of(self, row: Row, inputs: Properties, outputs: Properties) -> Properties:
        """The outputs, with values that only the service decides unknown."""
        settled = {**row.defaults, **inputs}
        shown = _of_schema(self._schemas.resource(row.token), {self.link: None, **outputs})
        return {
            name: value if name in self.foreknown else foreseen(settled.get(name, UNKNOWN), value)
            for name, value in shown.items()
        }


def _of_schema(schema: ResourceSchema | None, outputs: Properties) -> Properties:
    return {name: value for name, value in outputs.items() if schema is None or name in schema.outputs}
