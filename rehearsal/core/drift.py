"""Changes outside of a program, such as by a colleague with a console or a failing machine."""

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from rehearsal.core.model import Call, EmulatedCloud, ProviderInstance, Record, RefusalError
from rehearsal.core.properties import head, steps
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.core.validate import nearest


def find(state: State, urn: str) -> Record:
    """The one resource with this URN, logical name or physical id. Raises RefusalError for none or many."""
    everything = state.find()
    named = [one for one in everything if urn in (one.urn, one.urn.rsplit("::", 1)[-1], one.id)]
    exact = [record for record in named if record.urn == urn] or named
    if len(exact) == 1:
        return exact[0]
    if exact:
        several = ", ".join(record.urn or record.id for record in exact[:6])
        raise RefusalError(
            "Ambiguous", f"{urn} is the name of several resources: {several}.", "Give its URN."
        )
    whole = urn.startswith("urn:")
    known = [one.urn if whole else one.urn.rsplit("::", 1)[-1] for one in everything if one.urn]
    near = nearest(urn, known) if known else "none is deployed."
    raise RefusalError("NotFound", f"no emulated resource has the name or URN {urn};", near)


def change(state: State, schemas: Schemas, record: Record, values: Mapping[str, Any]) -> None:
    """Set properties, given by path; inputs of the same name change, too.

    Raises RefusalError, before any change, for names that the type does not have.
    """
    schema = schemas.resource(record.type)
    for path in values:
        name = head(path)
        if schema and name not in schema.outputs and name not in schema.inputs:
            names = {*schema.outputs, *schema.inputs}
            raise RefusalError(
                "UnknownProperty", f"{record.type} has no property {name};", nearest(name, names)
            )
    inputs, outputs = json.loads(json.dumps([record.inputs, record.outputs]))
    for path, value in values.items():
        if schema is None or head(path) in schema.inputs:
            inputs = put(inputs, path, value)
        outputs = put(outputs, path, value)
        if head(path) == "tags" and "tagsAll" in outputs:
            outputs = put(outputs, "tagsAll" + path.removeprefix("tags"), value)
    state.replace(record, inputs=inputs, outputs=outputs)


def put(tree: Any, path: str, value: Any) -> Any:
    """A copy of a property tree with another value at a path; None removes it, lists may grow by one."""
    return _put(tree, steps(path), value)


def _put(tree: Any, keys: list[str | int], value: Any) -> Any:
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    if isinstance(key, int):
        items = list(tree) if isinstance(tree, list) else []
        if key > len(items):
            raise RefusalError("InvalidPath", f"index {key} is beyond the end of the list.")
        made = _put(items[key] if key < len(items) else None, rest, value)
        return items[:key] + ([] if made is None else [made]) + items[key + 1 :]
    fields = dict(tree) if isinstance(tree, Mapping) else {}
    made = _put(fields.get(key), rest, value)
    if made is None:
        fields.pop(key, None)
        return fields
    return {**fields, key: made}


def delete(cloud: EmulatedCloud, record: Record, log: Callable[[str, str], None]) -> None:
    """Delete a resource through its service, which may refuse."""
    instance = ProviderInstance(record.package, cloud.settings_for(record))
    call = Call(instance, record.type, record.urn, threading.Event(), log)
    cloud.delete(call, record.id, record.outputs)
