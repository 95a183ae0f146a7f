"""Convert resources of states and previews of the Pulumi CLI into the records that rules see.

The formats are those of the CLI 3.259.0: `ResourceV3` (sdk/go/common/apitype/core.go) and
`StepEventStateMetadata` (apitype/events.go); the marks inside of values are in
sdk/go/common/resource/sig/sig.go and pkg/resource/stack/deployment.go.
"""

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from policies.resource import Origin, Resource, UnknownValue, is_unknown, partly
from policies.sources.files import FileProblems, file_error

_MARK = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - marker of the CLI, not a secret
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_READABLE = (  # references to resources, assets and archives: the values beside the marker are plain
    "5cf8f73096256a8f31e491e813e4eb8e",
    "c44067f5952c0a294b673a41bacd8c17",
    "0def7320c3a5731c473e5ecbe6d01bc7",
)
_LATER = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# Values that are no strings have their own markers for plug-ins (sdk/go/common/resource/plugin/rpc.go).
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
    """A serialized value without markers: secrets, and values unknown in a preview, become UnknownValue."""
    if isinstance(value, str):
        if is_later(value):
            return UnknownValue(path, _AWAITED)
        return UnknownValue(path, _HIDDEN) if value == _REDACTED else value
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
    """Return whether a serialized string is, or contains, a value known only after the deployment."""
    return _LATER in text or text in _LATER_OF_FORMS


def _marked(value: Mapping[str, Any], path: str) -> Any:
    mark = value[_MARK]
    if mark == _SECRET:
        return UnknownValue(path, _HIDDEN)
    if mark in _READABLE:
        return {key: one for key, one in value.items() if key != _MARK}
    if mark == _OUTPUT and "value" in value and not value.get("secret"):
        return plain(value["value"], path)
    return UnknownValue(path, "has a format that this version cannot read")


class Converter:
    """Converts the rows of a file into resources and collects their problems."""

    def __init__(
        self, problems: FileProblems, origin: Origin, settings: Mapping[str, Any] | None = None
    ) -> None:
        """`settings`: configuration of the stack, such as `aws:region`, which default providers have.

        A preview leaves these providers out of its steps (pkg/backend/display/json.go of CLI 3.259.0).
        """
        self._problems, self._origin, self._settings = problems, origin, settings or {}
        self._rows: list[tuple[str, Mapping[str, Any]]] = []

    def add(self, path: str, row: Any) -> None:
        """Add a row; `path` is its place in the file."""
        if not isinstance(row, dict):
            self._problems.add(path, row, "must be an object", _FIX, "file-value-wrong-type")
            return
        urn = self._problems.wants(row, "urn", str, path, _FIX)
        if urn.count("::") < 3 or not urn.startswith("urn:pulumi:"):
            rule = "must be the URN of a resource"
            self._problems.add(f"{path}.urn", row.get("urn"), rule, _FIX, "state-invalid-urn")
            return
        for key in ("id", "type", "parent", "provider", "modified"):
            self._problems.wants(row, key, str, path, _FIX)
        for key in ("inputs", "outputs", "propertyDependencies"):
            self._problems.wants(row, key, dict, path, _FIX)
        for key in ("protect", "delete", "custom"):
            self._problems.wants(row, key, bool, path, _FIX)
        self._texts(row.get("dependencies"), f"{path}.dependencies")
        self._texts(row.get("initErrors"), f"{path}.initErrors")
        if isinstance(row.get("modified"), str) and _time(row["modified"]) is None:
            self._problems.add(
                f"{path}.modified", row["modified"], "must be a time", _FIX, "state-invalid-time"
            )
        given = row.get("propertyDependencies")
        for key, value in (given if isinstance(given, dict) else {}).items():
            self._texts(value, f"{path}.propertyDependencies.{key}")
        self._rows.append((path, row))

    def _texts(self, value: Any, path: str) -> None:
        if value is not None and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            self._problems.add(path, value, "must be a list of texts", _FIX, "file-value-wrong-type")

    def resources(self) -> list[Resource]:
        """The cloud resources among the rows. Raises UserError with all problems."""
        self._problems.end()
        try:
            return self._converted()
        except RecursionError:
            rule = "is nested too deeply for a state"
            self._problems.add("", None, rule, _FIX, "input-file-nested-too-deeply")
            self._problems.end()
            raise

    def _converted(self) -> list[Resource]:
        rows = [row for _, row in self._rows if not row.get("delete")]
        providers = {
            row["urn"]: plain({**(row.get("inputs") or {}), **(row.get("outputs") or {})})
            for row in rows
            if _kind(row).startswith(_PROVIDER)
        }
        return [
            self._resource(row, self._provider(str(row.get("provider") or "").rpartition("::")[0], providers))
            for row in rows
            if row.get("custom") and not _kind(row).startswith("pulumi:")
        ]

    def _provider(self, urn: str, known: Mapping[str, dict[str, Any]]) -> Mapping[str, Any]:
        if urn in known or not urn.rpartition("::")[2].startswith("default"):
            return known.get(urn, {})
        package = urn.split("::")[2].removeprefix(_PROVIDER)
        given = {
            key.removeprefix(f"{package}:"): plain(value)
            for key, value in self._settings.items()
            if key.startswith(f"{package}:")
        }
        return partly(given)

    def _resource(self, row: Mapping[str, Any], provider: Mapping[str, Any]) -> Resource:
        asked = plain(row.get("inputs") or {})
        props = _overlaid(asked, plain(row.get("outputs") or {}))
        known = plain(row.get("id") or "", "id")
        references = row.get("propertyDependencies") or {}
        return Resource(
            kind=_kind(row),
            urn=row["urn"],
            name=row["urn"].split("::", 3)[3],
            id=UnknownValue("id", _AWAITED) if not is_unknown(known) and not known else known,
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

    def _later(self, name: str) -> UnknownValue | None:
        return UnknownValue(name, _AWAITED) if self._origin == "planned" else None


def _time(text: str | None) -> datetime.datetime | None:
    """A time of the engine (RFC 3339, with nanoseconds); None if it is invalid."""
    try:
        found = datetime.datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or datetime.UTC).astimezone(datetime.UTC)


def _kind(row: Mapping[str, Any]) -> str:
    return row.get("type") or str(row["urn"]).split("::", 3)[2].rpartition("$")[2]


def _overlaid(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Outputs over inputs; `**` keeps unknown values."""
    return partly({**below, **above})


def _raw(holder: Mapping[str, Any], key: str) -> Any:
    return dict.get(holder, key) if isinstance(holder, dict) else None


def _first(holder: Mapping[str, Any], *keys: str) -> Any:
    """The first text under one of the keys; unknown values are skipped."""
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
    """All tags or labels in the cloud, with those that the provider adds."""
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
    if is_unknown(value) or not isinstance(value, str):
        return None if is_unknown(value) else value
    try:
        return json.loads(value)
    except ValueError:
        return None


def check_not_empty(resources: Sequence[Resource], file: str, allowed: bool) -> None:
    """Raise UserError if there is nothing to judge, unless that is allowed."""
    if not resources and not allowed:
        fix = "Take the right stack, or add --allow-empty."
        raise file_error(file, "holds no resource of a cloud", fix, "source-without-resources")
