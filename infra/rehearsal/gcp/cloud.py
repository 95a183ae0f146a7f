"""Google Cloud, generically: properties are checked against the SDK, ids and self links look like Google's.

No service has rules of its own here yet: references are not followed and nothing refuses a deletion.
"""

import secrets
from pathlib import Path
from typing import Any

from infra.rehearsal.model import UNKNOWN, Call, CheckFailure, Cloud, Diff, Instance, Properties, RefusalError
from infra.rehearsal.properties import changed, without_none
from infra.rehearsal.schema import ResourceSchema, Schemas
from infra.rehearsal.state import State
from infra.rehearsal.validate import validate

PACKAGE = "gcp"
# What identifies a Google resource: a change makes another one of it.
_REPLACES = frozenset({"name", "project", "region", "location", "zone"})
_PLACES = ("zone", "location", "region")


class GcpCloud(Cloud):
    """Serves every gcp provider of every engine; thread-safe."""

    package = PACKAGE

    def __init__(self, state: State, schemas: Schemas, home: Path) -> None:
        self.version = schemas.version
        self._state = state
        self._schemas = schemas
        self._home = home

    def check_config(self, config: Properties) -> list[CheckFailure]:
        """Nothing is required: resources may name their project themselves."""
        return []

    def check(
        self, call: Call, old: Properties | None, new: Properties
    ) -> tuple[Properties, list[CheckFailure]]:
        """Schema, and an automatic name."""
        schema = self._schemas.resource(call.type)
        inputs = without_none(new)
        if schema is None:
            return inputs, [CheckFailure("", f"pulumi-gcp {self.version} has no type {call.type}")]
        if "name" in schema.inputs and not schema.inputs["name"].required and "name" not in inputs:
            kept = (old or {}).get("name")
            suffix = call.random_seed.hex()[:7] or "0000000"
            inputs["name"] = kept if isinstance(kept, str) else f"{call.name.lower()}-{suffix}"
        return inputs, validate(schema, inputs)

    def diff(
        self, call: Call, id: str, old_inputs: Properties, old_outputs: Properties, new: Properties
    ) -> Diff:
        """Changed paths; what identifies the resource replaces it."""
        paths = tuple(changed(without_none(old_inputs), without_none(new)))
        return Diff(paths, tuple(path for path in paths if path in _REPLACES))

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """Keep it under the path that Google gives it."""
        schema = self._schemas.resource(call.type)
        project = _given(inputs, call, "project") or "rehearsal"
        place = next(
            (f"{name}s/{_given(inputs, call, name)}/" for name in _PLACES if _given(inputs, call, name)), ""
        )
        kind = call.type.rpartition(":")[2]
        name = inputs.get("name") or secrets.token_hex(8)
        identifier = f"projects/{project}/{place}{kind[0].lower()}{kind[1:]}s/{name}"
        computed = {
            "project": project,
            "selfLink": f"https://www.googleapis.com/compute/v1/{identifier}",
            "uid": secrets.token_hex(8),
        }
        if preview:
            return "", _outputs(schema, inputs, dict.fromkeys(computed, UNKNOWN))
        outputs = _outputs(schema, inputs, computed)
        with self._state.transaction():
            if self._state.get(PACKAGE, call.type, project, identifier) is not None:
                raise RefusalError("alreadyExists", f"The resource '{identifier}' already exists")
            record = self._state.insert(
                package=PACKAGE,
                type=call.type,
                scope=project,
                id=identifier,
                urn=call.urn,
                name=str(name),
                inputs=inputs,
                outputs=outputs,
            )
            self._state.issue(record, {identifier, str(outputs.get("selfLink") or identifier)})
        return identifier, outputs

    def read(self, call: Call, id: str, inputs: Properties) -> tuple[Properties, Properties] | None:
        """What the state holds."""
        found = [record for record in self._state.issued(id) if record.type == call.type]
        return (found[0].inputs, found[0].outputs) if found else None

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """Change in place."""
        found = [record for record in self._state.issued(id) if record.type == call.type]
        if not found:
            raise RefusalError("notFound", f"The resource '{id}' was not found")
        kept = {name: value for name, value in found[0].outputs.items() if name not in found[0].inputs}
        outputs = {**kept, **inputs}
        if not preview:
            self._state.replace(found[0], inputs=inputs, outputs=outputs)
        return outputs

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """Forget it."""
        for record in self._state.issued(id):
            if record.type == call.type:
                self._state.remove(record)

    def invoke(self, instance: Instance, token: str, args: Properties) -> Properties:
        """No function is emulated yet."""
        raise RefusalError(
            "NotEmulated",
            f"the rehearsal does not know the function {token}.",
            "Functions of gcp are to be added in infra/rehearsal/gcp.",
        )


def _given(inputs: Properties, call: Call, name: str) -> Any:
    value = inputs.get(name)
    return call.instance.config.get(name) if value is None or value is UNKNOWN else value


def _outputs(schema: ResourceSchema | None, inputs: Properties, computed: Properties) -> Properties:
    return {
        **{name: value for name, value in computed.items() if schema is None or name in schema.outputs},
        **inputs,
    }
