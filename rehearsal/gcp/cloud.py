"""The Google Cloud of a rehearsal: creates, changes and deletes resources as rows, hooks and rules say."""

import secrets
from pathlib import Path

from rehearsal.core.model import Call, CheckFailure, Cloud, Diff, Instance, Properties, RefusalError
from rehearsal.core.properties import at, changed, without_none
from rehearsal.core.rules.telling import refusal, told, unknown_type
from rehearsal.core.schema import ResourceSchema, Schemas
from rehearsal.core.state import Record, State
from rehearsal.core.validate import validate
from rehearsal.gcp import functions, references, services
from rehearsal.gcp.naming import auto_name, was_automatic
from rehearsal.gcp.rules import BOOK
from rehearsal.gcp.shape import (
    compute,
    identifiers,
    labels_of,
    misplaced,
    places_of,
    preview_of,
    project_of,
    shrinks,
)
from rehearsal.gcp.site import PACKAGE, Hooks, Site
from rehearsal.gcp.table import Row, row

# Creates whose id the engine has not used yet: should it die before it saves them, they are taken back.
_UNCONFIRMED = "gcp-unconfirmed"
# Ids that Google does not give again although the resource is deleted.
_KEPT = "gcp-kept"
_EVERYWHERE = "global"
_NO_HOOKS = Hooks()
# The provider's own switch on most types: PREVENT refuses the deletion, ABANDON only forgets the resource.
_POLICY = "deletionPolicy"


class GcpCloud(Cloud):
    """Serves every gcp provider of every engine; thread-safe."""

    package = PACKAGE

    def __init__(self, state: State, schemas: Schemas, home: Path) -> None:
        self.version = schemas.version
        self._state = state
        self._schemas = schemas
        self._home = home

    def check_config(self, config: Properties) -> list[CheckFailure]:
        """Nothing is required: resources may name their project and place themselves."""
        return []

    # -- requests of the engine ------------------------------------------------------------------------

    def check(
        self, call: Call, old: Properties | None, new: Properties
    ) -> tuple[Properties, list[CheckFailure]]:
        """Schema, places, rules on the inputs, and an automatic name."""
        schema = self._schemas.resource(call.type)
        inputs = without_none(new)
        if schema is None:
            return inputs, [unknown_type(PACKAGE, self.version, call.type)]
        line = row(call.type, schema.inputs)
        field = schema.inputs.get(line.name)
        if (
            field is not None
            and not field.required
            and line.name not in inputs
            and "namePrefix" not in inputs
        ):
            inputs[line.name] = auto_name(line, call.name, call.random_seed, old)
        failures = validate(schema, inputs) or misplaced(line, schema, call, inputs)
        if not failures:
            broken = BOOK.broken_alone(call.type, inputs)
            failures = [CheckFailure(violation.path, told(rule.id, violation)) for rule, violation in broken]
        return inputs, failures

    def diff(
        self, call: Call, id: str, old_inputs: Properties, old_outputs: Properties, new: Properties
    ) -> Diff:
        """Changed paths; those of the row's replace-only properties force a replacement."""
        site = self._site(call, old_inputs)
        self._confirm(site, id)
        line = self._row(call)
        paths = tuple(
            path
            for path in changed(without_none(old_inputs), without_none(new))
            if not path.startswith(("__defaults", "__internal"))
        )
        replaces = [path for path in paths if line.replaces(path) or shrinks(line, path, old_inputs, new)]
        labels = labels_of(call.instance.config, new)
        if (
            not paths
            and "effectiveLabels" in old_outputs
            and labels != (old_outputs["effectiveLabels"] or {})
        ):
            paths = ("effectiveLabels",)
        name = at(new, line.name)
        fixed = isinstance(name, str) and not was_automatic(line, call.name, name)
        return Diff(paths, tuple(replaces), bool(replaces) and fixed and name == at(old_inputs, line.name))

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """Create, after the service has admitted it."""
        schema = self._schemas.resource(call.type)
        site, line = self._site(call, inputs, preview=preview), self._row(call)
        with self._state.transaction():
            self._take_back(site)
            used = references.resolve(site, line, inputs)
            self._refuse_broken(site, inputs)
            identifier, outputs = self._compute(site, line, schema, inputs)
            if preview:
                return "", preview_of(line, inputs, outputs)
            self._refuse_taken(site, line, identifier, outputs)
            record = self._state.insert(
                package=PACKAGE,
                type=call.type,
                scope=self._scope(site, line),
                id=identifier,
                urn=call.urn,
                name=line.display_name(outputs),
                inputs=inputs,
                outputs=outputs,
            )
            self._state.issue(record, identifiers(line, identifier, outputs))
            self._state.refer(record, used)
            self._state.put_document(_UNCONFIRMED, call.urn, record.key)
        return identifier, outputs

    def read(self, call: Call, id: str, inputs: Properties) -> tuple[Properties, Properties] | None:
        """What the state holds, whether this engine made it or not."""
        record = self._get(call, id)
        if record is None:
            return None
        self._confirm(self._site(call, inputs), id)
        return record.inputs, record.outputs

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """Change in place; what the service computed at creation stays."""
        schema = self._schemas.resource(call.type)
        site, line = self._site(call, inputs, preview=preview), self._row(call)
        with self._state.transaction():
            record = self._get(call, id)
            if record is None:
                code, message = line.missing
                raise RefusalError(code, message.format(value=id), "Run `pulumi refresh` to drop it.")
            used = references.resolve(site, line, inputs)
            self._refuse_broken(site, inputs)
            kept = {name: value for name, value in record.outputs.items() if name not in record.inputs}
            outputs = {**line.defaults, **kept, **inputs}
            if "effectiveLabels" in outputs:
                labels = labels_of(call.instance.config, inputs)
                outputs.update({"effectiveLabels": labels, "pulumiLabels": labels})
            updated = self._hooks(call).updated
            if updated is not None:
                outputs = {**outputs, **updated(site, record, inputs)}
            outputs = {name: value for name, value in outputs.items() if not schema or name in schema.outputs}
            if not preview:
                record = self._state.replace(record, inputs=inputs, outputs=outputs)
                self._state.issue(record, identifiers(line, id, outputs))
                self._state.refer(record, used)
                self._confirm(site, id)
        return outputs

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """Delete, unless it is protected or something that the service looks at still refers to it."""
        site, line = self._site(call, outputs), self._row(call)
        with self._state.transaction():
            record = self._get(call, id)
            if record is None:
                return
            self._refuse_protected(line, record)
            deleting = self._hooks(call).deleting
            if deleting is not None:
                deleting(site, record)
            self._refuse_used(line, record)
            if line.kept:
                self._state.put_document(_KEPT, f"{call.type}|{record.scope}|{id}", line.kept)
            self._remove(record)

    def invoke(self, instance: Instance, token: str, args: Properties) -> Properties:
        """A function such as `gcp:compute/getZones:getZones`."""
        return functions.call(self._state, token, args, instance.config)

    # -- the parts of a request ------------------------------------------------------------------------

    def _site(self, call: Call, given: Properties, *, preview: bool = False) -> Site:
        config = call.instance.config
        places = places_of(config, given)
        return Site(self._state, project_of(config, given), places, call, preview)

    def _row(self, call: Call) -> Row:
        schema = self._schemas.resource(call.type)
        return row(call.type, schema.inputs if schema else {})

    def _hooks(self, call: Call) -> Hooks:
        return services.HOOKS.get(call.type.removeprefix("gcp:"), _NO_HOOKS)

    def _scope(self, site: Site, line: Row) -> str:
        return _EVERYWHERE if line.everywhere else site.project

    def _get(self, call: Call, id: str) -> Record | None:
        """Ids hold their project, save those of Cloud SQL: there the provider's project decides."""
        found = [record for record in self._state.issued(id) if record.type == call.type and record.id == id]
        project = project_of(call.instance.config, {})
        return next((record for record in found if record.scope == project), found[0] if found else None)

    def _compute(
        self, site: Site, line: Row, schema: ResourceSchema | None, inputs: Properties
    ) -> tuple[str, Properties]:
        seed = "preview" if site.preview else secrets.token_hex(16)
        identifier, outputs = compute(site, line, schema, seed, inputs)
        more = self._hooks(site.call).outputs
        if more is not None:
            outputs.update(more(site, seed, inputs, {**outputs, "id": identifier}))
            identifier = str(outputs.pop("id", identifier))
        if schema is not None:
            outputs = {name: value for name, value in outputs.items() if name in schema.outputs}
        return identifier, outputs

    def _refuse_broken(self, site: Site, inputs: Properties) -> None:
        for rule, violation in BOOK.broken_around(site.call.type, inputs, site):
            raise refusal(rule.id, violation, "badRequest")

    def _refuse_taken(self, site: Site, line: Row, id: str, outputs: Properties) -> None:
        scope, (code, message) = self._scope(site, line), line.exists
        words = {**outputs, "id": id, "project": site.project, "name": line.display_name(outputs) or id}
        other = self._state.get(PACKAGE, line.token, scope, id)
        kept = self._state.document(_KEPT, f"{line.token}|{scope}|{id}")
        if other is not None:
            owner = f"It belongs to {other.urn}." if other.urn else ""
            raise RefusalError(code, message.format(**words), owner)
        if kept is not None:
            fix = f"It was deleted before, but {kept}: use another name, or let Pulumi choose one."
            raise RefusalError(code, message.format(**words), fix)

    def _refuse_protected(self, line: Row, record: Record) -> None:
        if record.outputs.get(_POLICY) == "PREVENT":
            message = f'cannot destroy {record.id} without setting deletion_policy="DELETE"'
            raise RefusalError("deletionPolicy", message, "Set it and run up before destroy.")
        if line.protected is not None:
            name, message = line.protected
            if record.outputs.get(name) in (True, "true"):
                fix = f"Set {name} to false and run up before destroy."
                raise RefusalError("deletionProtection", message.format(name=record.name), fix)

    def _refuse_used(self, line: Row, record: Record) -> None:
        if line.blocked is None:
            return
        for reference in self._state.users(record):
            user = reference.user
            if user.key != record.key and line.blocked.holds(user.type, reference.path):
                message = line.blocked.message.format(id=record.id, user=user.id)
                raise RefusalError(
                    line.blocked.code, message, f"Still used by {user.urn or user.id} ({reference.path})."
                )

    def _remove(self, record: Record) -> None:
        self._state.remove(record)
        if record.urn and self._state.document(_UNCONFIRMED, record.urn) == record.key:
            self._state.drop_document(_UNCONFIRMED, record.urn)

    # -- creates that the engine never heard of --------------------------------------------------------

    def _take_back(self, site: Site) -> None:
        """Delete what a killed run created for this URN and could not save."""
        lost = None if site.preview else self._state.document(_UNCONFIRMED, site.call.urn)
        if lost is None:
            return
        for record in self._state.find(package=PACKAGE, type=site.call.type):
            if record.key == lost:
                site.call.log("info", f"taking back {record.id}, which an interrupted run left behind")
                self._remove(record)

    def _confirm(self, site: Site, id: str) -> None:
        key = self._state.document(_UNCONFIRMED, site.call.urn)
        record = self._get(site.call, id) if key is not None else None
        if record is not None and record.key == key:
            self._state.drop_document(_UNCONFIRMED, site.call.urn)
