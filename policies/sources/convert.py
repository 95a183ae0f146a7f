"""Resources as the Pulumi CLI writes them into states and previews, to the record that rules see.

The forms are those of the CLI 3.259.0: `ResourceV3` (sdk/go/common/apitype/core.go) and
`StepEventStateMetadata` (apitype/events.go); the marks inside of values are in
sdk/go/common/resource/sig/sig.go and pkg/resource/stack/deployment.go.
"""

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from policies.resource import Origin, Resource, Unknown, is_unknown, partly
from policies.sources.document import Complaints

_MARK = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - how the CLI marks a secret, not one
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_READABLE = (  # references to resources, assets and archives: what is beside the mark is plain
    "5cf8f73096256a8f31e491e813e4eb8e",
    "c44067f5952c0a294b673a41bacd8c17",
    "0def7320c3a5731c473e5ecbe6d01bc7",
)
_LATER = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# What is no text has marks of its own towards plugins (sdk/go/common/resource/plugin/rpc.go).
_LATER_OF_FORMS = frozenset(
    (
        *("1c4a061d-8072-4f0a-a4cb-0ff528b18fe7", "3eeb2bf0-c639-47a8-9e75-3b44932eb421"),
        *("6a19a0b0-7e62-4c92-b797-7f8e31da9cc2", "030794c1-ac77-496b-92df-f27374a8bd58"),
        *("e48ece36-62e2-4504-bad9-02848725956a", "dd056dcd-154b-4c76-9bd3-c8f88648b5ff"),
    )
)
_REDACTED = "[secret]"
_PROVIDER = "pulumi:providers:"
_AWAITED = "is not known before the deployment"
_HIDDEN = "is a secret"
_FIX = "Write the file again with the Pulumi CLI, and do not edit it."


def plain(value: Any, path: str = "") -> Any:
    """A serialized value without marks: secrets, and what a preview does not know, become `Unknown`."""
    if isinstance(value, str):
        if is_later(value):
            return Unknown(path, _AWAITED)
        return Unknown(path, _HIDDEN) if value == _REDACTED else value
    if isinstance(value, dict):
        if _MARK in value:
            return _marked(value, path)
        below = f"{path}." if path else ""
        made = {key: plain(one, below + key) for key, one in value.items() if not key.startswith("__")}
        return partly(made)
    if isinstance(value, list):
        return [plain(one, f"{path}[{index}]") for index, one in enumerate(value)]
    return value


def is_later(text: str) -> bool:
    """Whether a serialized text stands for, or contains, what only the deployment will tell."""
    return _LATER in text or text in _LATER_OF_FORMS


def _marked(value: Mapping[str, Any], path: str) -> Any:
    mark = value[_MARK]
    if mark == _SECRET:
        return Unknown(path, _HIDDEN)
    if mark in _READABLE:
        return {key: one for key, one in value.items() if key != _MARK}
    if mark == _OUTPUT and "value" in value and not value.get("secret"):
        return plain(value["value"], path)
    return Unknown(path, "is written in a form that this version cannot read")


class Converter:
    """Turns the rows of one file into resources; what is wrong with them is gathered in `complaints`."""

    def __init__(self, complaints: Complaints, origin: Origin) -> None:
        self._complaints, self._origin = complaints, origin
        self._rows: list[tuple[str, Mapping[str, Any]]] = []

    def add(self, path: str, row: Any) -> None:
        """Take one row; `path` is its place in the file."""
        if not isinstance(row, dict):
            self._complaints.add(path, row, "must be an object", _FIX)
            return
        urn = self._complaints.wants(row, "urn", str, path, _FIX)
        if urn.count("::") < 3 or not urn.startswith("urn:pulumi:"):
            self._complaints.add(f"{path}.urn", row.get("urn"), "must be the URN of a resource", _FIX)
            return
        for key in ("id", "type", "parent", "provider", "modified"):
            self._complaints.wants(row, key, str, path, _FIX)
        for key in ("inputs", "outputs", "propertyDependencies"):
            self._complaints.wants(row, key, dict, path, _FIX)
        for key in ("protect", "delete", "custom"):
            self._complaints.wants(row, key, bool, path, _FIX)
        self._texts(row.get("dependencies"), f"{path}.dependencies")
        self._texts(row.get("initErrors"), f"{path}.initErrors")
        if isinstance(row.get("modified"), str) and _time(row["modified"]) is None:
            self._complaints.add(f"{path}.modified", row["modified"], "must be a time", _FIX)
        given = row.get("propertyDependencies")
        for key, value in (given if isinstance(given, dict) else {}).items():
            self._texts(value, f"{path}.propertyDependencies.{key}")
        self._rows.append((path, row))

    def _texts(self, value: Any, path: str) -> None:
        if value is not None and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            self._complaints.add(path, value, "must be a list of texts", _FIX)

    def resources(self) -> list[Resource]:
        """The resources of a cloud among the rows. Raises UserError for everything that is wrong."""
        self._complaints.end()
        try:
            return self._converted()
        except RecursionError:
            self._complaints.add("", None, "is nested too deeply for a state", _FIX)
            self._complaints.end()
            raise

    def _converted(self) -> list[Resource]:
        rows = [row for _, row in self._rows if not row.get("delete")]
        providers = {
            row["urn"]: plain({**(row.get("inputs") or {}), **(row.get("outputs") or {})})
            for row in rows
            if _kind(row).startswith(_PROVIDER)
        }
        return [
            self._resource(row, providers.get(str(row.get("provider") or "").rpartition("::")[0], {}))
            for row in rows
            if row.get("custom") and not _kind(row).startswith("pulumi:")
        ]

    def _resource(self, row: Mapping[str, Any], provider: Mapping[str, Any]) -> Resource:
        asked = plain(row.get("inputs") or {})
        props = _overlaid(asked, plain(row.get("outputs") or {}))
        known = plain(row.get("id") or "", "id")
        references = row.get("propertyDependencies") or {}
        return Resource(
            kind=_kind(row),
            urn=row["urn"],
            name=row["urn"].split("::", 3)[3],
            id=Unknown("id", _AWAITED) if not is_unknown(known) and not known else known,
            region=_first(props, "region") or _first(provider, "region"),
            account=_account(props, provider),
            props=props,
            asked=asked,
            tags=_tags(props, provider),
            parent=row.get("parent") or "",
            dependencies=tuple(row.get("dependencies") or ()),
            references={key: tuple(urns or ()) for key, urns in references.items()},
            protect=bool(row.get("protect")),
            init_errors=tuple(row.get("initErrors") or ()),
            modified=_time(row.get("modified")) or self._later("modified"),
            plugin=_first(provider, "version"),
            origin=self._origin,
        )

    def _later(self, name: str) -> Unknown | None:
        return Unknown(name, _AWAITED) if self._origin == "planned" else None


def _time(text: str | None) -> datetime.datetime | None:
    """The time that the engine writes (RFC 3339, with nanoseconds); None where it is none."""
    try:
        found = datetime.datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or datetime.UTC).astimezone(datetime.UTC)


def _kind(row: Mapping[str, Any]) -> str:
    return row.get("type") or str(row["urn"]).split("::", 3)[2].rpartition("$")[2]


def _overlaid(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """What the cloud answered, and where it said nothing, what it was given; `**` keeps what is unknown."""
    return partly({**below, **above})


def _raw(holder: Mapping[str, Any], key: str) -> Any:
    return dict.get(holder, key) if isinstance(holder, dict) else None


def _first(holder: Mapping[str, Any], *keys: str) -> Any:
    """The first text under one of the keys; an unknown value is nothing here."""
    found = (_raw(holder, key) for key in keys)
    return next((value for value in found if not is_unknown(value) and isinstance(value, str)), "")


def _account(props: Mapping[str, Any], provider: Mapping[str, Any]) -> str:
    arn = str(_first(props, "arn")).split(":")
    if len(arn) > 5 and arn[4]:
        return arn[4]
    allowed = _json(_raw(provider, "allowedAccountIds"))
    if isinstance(allowed, list) and len(allowed) == 1:
        return str(allowed[0])
    return str(_first(props, "project") or _first(provider, "project"))


def _tags(props: Mapping[str, Any], provider: Mapping[str, Any]) -> Mapping[str, Any]:
    """All tags or labels that reach the cloud, with those that the provider adds."""
    metadata = _raw(props, "metadata")
    labels = _raw(metadata, "labels") if not is_unknown(metadata) and isinstance(metadata, dict) else None
    for value in (_raw(props, "tagsAll"), _raw(props, "effectiveLabels")):
        if not is_unknown(value) and isinstance(value, dict):
            return value
    defaults = _json(_raw(provider, "defaultTags"))
    usual = defaults.get("tags") if isinstance(defaults, dict) else None
    merged: dict[str, Any] = {}
    for value in (usual, _json(_raw(provider, "defaultLabels")), _raw(props, "labels"), labels):
        merged |= _object(value)
    merged |= _object(_raw(props, "tags"))
    return partly(merged)


def _object(value: Any) -> dict[str, Any]:
    return value if not is_unknown(value) and isinstance(value, dict) else {}


def _json(value: Any) -> Any:
    """The settings of a provider are JSON texts."""
    if is_unknown(value) or not isinstance(value, str):
        return None if is_unknown(value) else value
    try:
        return json.loads(value)
    except ValueError:
        return None


def refuse_empty(resources: Sequence[Resource], file: str, allowed: bool) -> None:
    """Raise UserError where nothing is left to judge, unless that is expected."""
    if not resources and not allowed:
        complaints = Complaints(file)
        complaints.add(
            "", None, "holds no resource of a cloud", "Take the right stack, or add --allow-empty."
        )
        complaints.end()
