"""The AWS of a rehearsal: creates, changes and deletes resources as rows and hooks say, in one state."""

import re
import secrets
from pathlib import Path
from typing import Any

from rehearsal.aws import functions, references, services
from rehearsal.aws.generic import computed
from rehearsal.aws.naming import auto_name, expand, was_automatic
from rehearsal.aws.replacing import replacing
from rehearsal.aws.rules import BOOK
from rehearsal.aws.shape import account_of, gone, identifiers, is_told, preview_of, tags_changed
from rehearsal.aws.site import OWNER, PACKAGE, Hooks, Site
from rehearsal.aws.table import Row, row
from rehearsal.core.model import (
    UNKNOWN,
    Call,
    CheckFailure,
    Diff,
    Instance,
    Properties,
    RefusalError,
)
from rehearsal.core.properties import at, changed, decoded, without_none
from rehearsal.core.rules.telling import refusal, told, unknown_type
from rehearsal.core.schema import ResourceSchema, Schemas
from rehearsal.core.state import Record, State
from rehearsal.core.validate import validate

DEFAULT_REGION = "us-east-1"
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
_NO_HOOKS = Hooks()


def _words(template: Any) -> set[str]:
    """The words in braces that a template needs."""
    return set(re.findall(r"\{[^{}]+\}", template)) if isinstance(template, str) else set()


class AwsCloud:
    """Serves every aws provider of every engine; thread-safe."""

    package = PACKAGE

    def __init__(self, state: State, schemas: Schemas, home: Path) -> None:
        self.version = schemas.version
        self._state = state
        self._schemas = schemas
        self._home = home

    # -- configuration ---------------------------------------------------------------------------------

    def check_config(self, config: Properties) -> list[CheckFailure]:
        """A region is needed, as by the real provider; a profile or key is not, nothing real is asked."""
        region = config.get("region")
        if region is UNKNOWN:
            return []
        if not region:
            fix = "set aws:region in the stack's configuration or AWS_REGION"
            return [CheckFailure("region", f"Missing region configuration: {fix}")]
        if not isinstance(region, str) or not _REGION.fullmatch(region):
            return [CheckFailure("region", f"Invalid AWS Region: {region}")]
        return []

    def _site(self, call: Call, given: Properties, *, preview: bool = False) -> Site:
        config = call.instance.config
        account = account_of(config)
        region = given.get("region")
        if not isinstance(region, str):
            region = str(config.get("region") or DEFAULT_REGION)
        place = "global" if row(call.type).is_global else region
        return Site(self._state, account, region, f"{account}/{place}", call, preview)

    # -- requests of the engine ------------------------------------------------------------------------

    def check(
        self, call: Call, old: Properties | None, new: Properties
    ) -> tuple[Properties, list[CheckFailure]]:
        """Schema and rules on the inputs; automatic names."""
        schema = self._schemas.resource(call.type)
        inputs = without_none(new)
        if schema is None:
            return inputs, [unknown_type(PACKAGE, self.version, call.type)]
        line = self._row(call.type, schema)
        name = (
            auto_name(line, call.name, call.random_seed, old, inputs) if line.name in schema.inputs else None
        )
        if name is not None:
            inputs[line.name] = name
        failures = validate(schema, inputs)
        if not failures:
            broken = BOOK.broken_alone(call.type, inputs)
            failures = [CheckFailure(violation.path, told(rule.id, violation)) for rule, violation in broken]
        return inputs, failures

    def diff(
        self, call: Call, id: str, old_inputs: Properties, old_outputs: Properties, new: Properties
    ) -> Diff:
        """Changed paths; those of the row's replace-only properties force a replacement."""
        site = self._site(call, old_inputs)
        schema = self._schemas.resource(call.type)
        line = self._row(call.type, schema)
        paths = tuple(path for path in changed(without_none(old_inputs), without_none(new)) if is_told(path))
        replaces = [path for path in paths if replacing(line, path, old_inputs, new)]
        if "defaultTags" in call.instance.config and not paths:
            paths = tags_changed(self._tags(site, new, schema), old_outputs.get("tagsAll"))
        name = at(new, line.name) if line.name else None
        fixed = isinstance(name, str) and not was_automatic(line, call.name, name)
        kept = fixed and name == at(old_inputs, line.name)
        before = bool(replaces) and (kept or (not line.name and line.unique is not None))
        return Diff(paths, tuple(replaces), before)

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """Create, after the service has admitted it."""
        site = self._site(call, inputs, preview=preview)
        schema = self._schemas.resource(call.type)
        line, hooks = self._row(call.type, schema), self._hooks(call.type)
        with self._state.transaction():
            used = references.resolve(site, line, inputs)
            self._admit(site, line, inputs)
            seed = "preview" if preview else secrets.token_hex(16)
            identifier, outputs = self._compute(site, line, hooks, seed, inputs)
            if preview:
                return "", preview_of(line, inputs, outputs, schema)
            record = self._insert(site, line, identifier, inputs, outputs)
            self._state.refer(record, used)
            if hooks.created is not None:
                hooks.created(site, record)
        return identifier, outputs

    def read(self, call: Call, id: str, inputs: Properties) -> tuple[Properties, Properties] | None:
        """What the state holds, whether this engine made it or not."""
        site = self._site(call, inputs)
        record = self._get(site, id)
        if record is None:
            return None
        return record.inputs, record.outputs

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """Change in place; what the service computed at creation stays."""
        site = self._site(call, inputs, preview=preview)
        schema = self._schemas.resource(call.type)
        line, hooks = self._row(call.type, schema), self._hooks(call.type)
        with self._state.transaction():
            record = self._get(site, id)
            if record is None:
                raise gone(line, id)
            used = references.resolve(site, line, inputs)
            self._admit(site, line, inputs, record)
            kept = {name: value for name, value in record.outputs.items() if name not in record.inputs}
            outputs = {**line.defaults, **kept, **inputs}
            outputs["tagsAll"] = self._tags(site, inputs, schema)
            outputs = {
                name: value for name, value in outputs.items() if schema is None or name in schema.outputs
            }
            if preview:
                return {**outputs, **dict.fromkeys(hooks.volatile, UNKNOWN)}
            if hooks.updated is not None:
                outputs = {**outputs, **hooks.updated(site, record, inputs)}
            record = self._state.replace(record, inputs=inputs, outputs=outputs)
            self._state.issue(record, identifiers(line, id, outputs))
            self._state.refer(record, used)
        return outputs

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """Delete, unless something that the service looks at still refers to it."""
        site = self._site(call, outputs)
        line, hooks = row(call.type), self._hooks(call.type)
        with self._state.transaction():
            record = self._get(site, id)
            if record is None:
                return
            if hooks.deleting is not None:
                hooks.deleting(site, record)
            self._refuse_if_used(line, record)
            site.drop_hidden(record)
            self._state.remove(record)

    def invoke(self, instance: Instance, token: str, args: Properties) -> Properties:
        """A function such as `aws:index/getAvailabilityZones:getAvailabilityZones`."""
        region = args.get("region") or instance.config.get("region") or DEFAULT_REGION
        return functions.call(
            self._state, token, args, account=account_of(instance.config), region=str(region)
        )

    # -- the parts of a request ------------------------------------------------------------------------

    def _row(self, token: str, schema: ResourceSchema | None) -> Row:
        return row(token, named=schema is not None and "name" in schema.inputs)

    def _hooks(self, token: str) -> Hooks:
        return services.HOOKS.get(token.removeprefix("aws:"), _NO_HOOKS)

    def _get(self, site: Site, id: str) -> Record | None:
        token = site.call.type
        found = self._state.get(PACKAGE, token, site.scope, id)
        if found is None and row(token).everywhere:
            account = [
                record
                for record in self._state.find(package=PACKAGE, type=token, id=id)
                if record.scope.startswith(f"{site.account}/")
            ]
            found = account[0] if account else None
        return found

    def _admit(self, site: Site, line: Row, inputs: Properties, record: Record | None = None) -> None:
        if line.unique is not None:
            self._refuse_duplicate(site, line, inputs, record)
        for rule, violation in BOOK.broken_around(line.token, inputs, site):
            if not rule.advice:
                raise refusal(rule.id, violation, "ValidationException")
            site.call.log("warning", told(rule.id, violation))

    def _refuse_duplicate(self, site: Site, line: Row, inputs: Properties, record: Record | None) -> None:
        assert line.unique is not None
        values = [at(inputs, name) for name in line.unique.properties]
        if UNKNOWN in values or (site.preview and record is None):
            return  # a preview cannot tell what an update deletes before this is created
        scope = None if line.everywhere else site.scope
        name = line.display_name(inputs) if line.name in line.unique.properties else None
        for other in self._state.find(package=PACKAGE, type=line.token, scope=scope, name=name):
            if record is not None and other.key == record.key:
                continue
            if [at(other.outputs, name) for name in line.unique.properties] == values:
                message = line.unique.message.format(name=line.display_name(inputs))
                owner = f"It belongs to {other.urn}." if other.urn else ""
                raise RefusalError(line.unique.code, message, owner)

    def _compute(
        self, site: Site, line: Row, hooks: Hooks, seed: str, inputs: Properties
    ) -> tuple[str, Properties]:
        """Id and outputs of a new resource."""
        schema = self._schemas.resource(line.token)
        outputs: Properties = {**line.defaults, **inputs}
        words: dict[str, Any] = {**outputs, "account": site.account, "region": site.region}
        for name, template in line.outputs.items():  # an id may be made of what is drawn
            if outputs.get(name) is None and not {"{id}", "{arn}"} & _words(template):
                outputs[name] = words[name] = expand(template, seed, words)
        if "{arn}" not in line.id:
            words["id"] = expand(line.id, seed, words)
        for name, template in line.outputs.items():
            if outputs.get(name) is None and "{arn}" not in str(template):
                outputs[name] = words[name] = expand(template, seed, words)
        if "arn" not in inputs and line.arn:
            outputs["arn"] = words["arn"] = expand(line.arn, seed, words)
        if "id" not in words:
            words["id"] = expand(line.id, seed, words)
        for name, template in line.outputs.items():
            if outputs.get(name) is None:
                outputs[name] = expand(template, seed, words)
        if schema is not None and not line.known:
            outputs = {**computed(schema, seed, inputs, site.account, site.region), **outputs}
        outputs.setdefault("region", site.region)
        outputs["tagsAll"] = self._tags(site, inputs, schema)
        if hooks.outputs is not None:
            outputs.update(hooks.outputs(site, seed, inputs, {**outputs, "id": words["id"]}))
        identifier = str(outputs.pop("id", words["id"]))
        if schema is not None:
            outputs = {name: value for name, value in outputs.items() if name in schema.outputs}
        return identifier, outputs

    def _tags(self, site: Site, inputs: Properties, schema: ResourceSchema | None) -> dict[str, Any]:
        """The resource's tags over the provider's."""
        if schema is not None and "tagsAll" not in schema.outputs:
            return {}
        defaults = decoded(site.call.instance.config.get("defaultTags"))
        shared = decoded(defaults.get("tags")) if isinstance(defaults, dict) else None
        own = inputs.get("tags")
        return {**(shared or {}), **(own if isinstance(own, dict) else {})}

    def _insert(self, site: Site, line: Row, id: str, inputs: Properties, outputs: Properties) -> Record:
        if self._state.get(PACKAGE, line.token, site.scope, id) is not None:
            raise RefusalError("ResourceAlreadyExists", f"{line.token} {id} exists already in {site.scope}.")
        record = self._state.insert(
            package=PACKAGE,
            type=line.token,
            scope=site.scope,
            id=id,
            urn=site.call.urn,
            name=line.display_name(inputs),
            inputs=inputs,
            outputs=outputs,
        )
        self._state.issue(record, identifiers(line, id, outputs))
        return record

    def _refuse_if_used(self, line: Row, record: Record) -> None:
        if line.blocked is None:
            return
        users = [
            reference
            for reference in self._state.users(record)
            if reference.path != OWNER and line.blocked.holds(reference.user.type, reference.path)
        ]
        users = [reference for reference in users if reference.user.key != record.key]
        if users:
            message = line.blocked.message.format(id=record.id, name=record.name or record.id)
            holders = dict.fromkeys(f"{_called(use.user)} ({use.path})" for use in users[:5])
            raise RefusalError(line.blocked.code, message, f"Still used by {', '.join(holders)}.")


def _called(user: Record) -> str:
    """What a message calls a resource; one that a service made by itself has no URN."""
    return user.urn or f"{user.name} {user.id}".strip()
