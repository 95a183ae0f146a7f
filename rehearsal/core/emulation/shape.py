"""Outputs of a resource: computed values, their preview, identifiers and labels."""

from collections.abc import Mapping
from typing import Any

from rehearsal.core.emulation.table import Row
from rehearsal.core.emulation.templates import expand, placeholders_of
from rehearsal.core.model import UNKNOWN, Properties, Record
from rehearsal.core.schema import ResourceSchema


def fill_in(row: Row, link: str, seed: str, outputs: Properties, values: Mapping[str, Any]) -> str:
    """Expand the row's templates into `outputs`, each after those that it uses; returns the id.

    `link` names the property of the row's link. Raises ValueError when templates use each other.
    """
    templates = {"id": row.id, **({link: row.link} if row.link else {}), **row.outputs}
    pending = {name: one for name, one in templates.items() if name == "id" or outputs.get(name) is None}
    known = {**outputs, **values}
    while pending:
        ready = [name for name, template in pending.items() if not placeholders_of(template) & pending.keys()]
        if not ready:
            raise ValueError(f"{row.token}: the templates of {', '.join(pending)} use each other")
        for name in ready:
            known[name] = expand(pending.pop(name), seed, known)
            if name != "id":
                outputs[name] = known[name]
    return str(known["id"])


def identifiers(row: Row, link: str, id: str, outputs: Properties) -> set[str]:
    """The values by which others may refer to a resource."""
    values = [id, outputs.get(link), *(outputs.get(name) for name in row.issues)]
    return {value for value in values if isinstance(value, str) and value}


def importable(schema: ResourceSchema | None, row: Row, record: Record) -> Properties:
    """The inputs by which a program would make a resource as it is: those that are required or not usual."""
    found = {}
    for name, one in (schema.inputs if schema else {}).items():
        value = record.outputs.get(name)
        usual = schema is not None and (
            name in schema.computed or value in (row.defaults.get(name), "", [], {})
        )
        if value is not None and (one.required or not usual):
            found[name] = value
    return found


def foreseen(given: Any, computed: Any) -> Any:
    """The outputs of a preview: given values, and unknown for values that the service adds."""
    if isinstance(given, dict) and isinstance(computed, dict):
        added = {name: foreseen(given.get(name, UNKNOWN), value) for name, value in computed.items()}
        return {**given, **added}
    if isinstance(given, list) and isinstance(computed, list) and len(given) == len(computed):
        return [foreseen(*pair) for pair in zip(given, computed, strict=True)]
    return given


def is_programs(path: str) -> bool:
    """Return whether a difference at `path` is the program's: the SDKs add properties of their own."""
    return not path.startswith(("__defaults", "__internal"))


def labels_over(defaults: Any, own: Any) -> dict[str, Any]:
    """Tags or labels of a resource, merged over those of its provider."""
    return {**(defaults if isinstance(defaults, dict) else {}), **(own if isinstance(own, dict) else {})}
