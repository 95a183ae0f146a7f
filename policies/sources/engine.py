"""Resources that the Pulumi engine passes to a policy pack.

It passes the inputs of a resource before its step, and the outputs of all resources at the end
(pkg/resource/deploy/step_generator.go and analyze_snapshot.go of the CLI 3.259.0). Ids are among the outputs.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from policies.resource import Origin, Resource
from policies.sources.convert import Converter, is_later
from policies.sources.files import FileProblems

Row = Mapping[str, Any]
"""A resource of the engine: `urn`, `type`, `properties`, `parent`, `protect`, `dependencies`,
`propertyDependencies`, and its `provider` with `urn`, `type` and `properties`."""
_Object = Mapping[str, Any]
_KEPT = ("urn", "type", "parent", "protect", "dependencies", "propertyDependencies")


class EngineResources:
    """The resources of a stack, as far as its engine has passed them."""

    def __init__(self) -> None:
        self.planned = False
        """True during a preview, in which some values are unknown."""
        self._inputs: dict[str, Mapping[str, Any]] = {}

    def note(self, row: Row) -> None:
        """Keep the inputs of a resource, which the engine passes only before its step."""
        self._inputs[row["urn"]] = row["properties"]

    def before(self, row: Row) -> list[Resource]:
        """The resource of a row with its inputs, before its step; empty for components."""
        return _converted([(row, row["properties"], {})], "planned")

    def after(self, rows: Iterable[Row]) -> list[Resource]:
        """All resources, from rows with outputs, sorted by URN: the engine passes them in no order."""
        ordered = sorted(rows, key=lambda row: str(row["urn"]))
        origin: Origin = "planned" if self.planned else "state"
        return _converted([(row, *self._known(row)) for row in ordered], origin)

    def _known(self, row: Row) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """(inputs, outputs) of a row. Values unknown in a preview are absent, as in its document."""
        inputs, outputs = self._inputs.get(row["urn"], {}), row["properties"]
        if self.planned:
            outputs = {key: value for key, value in outputs.items() if _is_known(value)}
        return inputs, outputs


def _converted(
    rows: Iterable[tuple[Row, Mapping[str, Any], Mapping[str, Any]]], origin: Origin
) -> list[Resource]:
    """The resources of (row, inputs, outputs), in the format of a state."""
    converter = Converter(FileProblems("the engine"), origin)
    providers: dict[str, Row] = {}
    for row, inputs, outputs in rows:
        provider = row.get("provider") or {}
        if provider:
            providers[provider["urn"]] = provider
        made = {
            **{key: row[key] for key in _KEPT if key in row},
            # Every resource but components has a provider, which is passed without its id.
            "custom": bool(provider),
            "provider": f"{provider.get('urn', '')}::",
            "id": outputs["id"] if isinstance(outputs.get("id"), str) else "",
            "inputs": inputs,
            "outputs": outputs,
        }
        converter.add(row["urn"], made)
    for urn, provider in providers.items():
        converter.add(urn, {"urn": urn, "type": provider["type"], "inputs": provider["properties"]})
    return converter.resources()


def _is_known(value: Any) -> bool:
    if isinstance(value, str):
        return not is_later(value)
    if isinstance(value, dict):
        return all(map(_is_known, value.values()))
    return all(map(_is_known, value)) if isinstance(value, list) else True
