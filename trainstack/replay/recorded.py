"""The exported state of a stack, ready for a rehearsal: without secrets, with the installed providers."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.errors import Problem, UserError
from rehearsal.core.packages import PACKAGES
from rehearsal.core.schema import sdk_version
from rehearsal.core.validate import SIGNATURE

_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a mark
"""Mark of a secret value (pulumi sdk/go/common/resource/sig/signature.go v3.259.0)."""
_LEFT_OUT = {SIGNATURE: _SECRET, "plaintext": json.dumps("left out")}
_LABELS = ("effectiveLabels", "pulumiLabels")
_FORMS: Mapping[str, Any] = {"serverCaCerts": [{"cert": "left out", "commonName": "left out"}]}
"""Values of secret outputs that are no text, by name: Cloud SQL's certificates."""
_PROVIDER = "pulumi:providers:"
_FIX = "Write it with `pulumi stack export --file FILE`, without --show-secrets."


@dataclass(frozen=True)
class RecordedState:
    """A state of one stack; secrets have a placeholder."""

    stack: str
    project: str
    deployment: Mapping[str, Any]
    secrets: Mapping[str, tuple[str, ...]]
    """Paths of inputs that were secret, by URN."""

    @property
    def resources(self) -> int:
        """The number of resources."""
        return len(self.deployment["resources"])


def placed(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The resources of a state, those of Google Cloud with the project of their provider."""
    projects = {
        f"{one['urn']}::{one.get('id')}": (one.get("inputs") or {}).get("project")
        for one in rows
        if one["type"] == f"{_PROVIDER}gcp"
    }
    for one in rows:
        project = projects.get(str(one.get("provider")))
        yield {**one, "project": project} if project and not one.get("project") else dict(one)


def of_file(path: Path) -> RecordedState:
    """The state in a file of `pulumi stack export`. Raises UserError for anything else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        rule = f"cannot be read: {error}"
        raise UserError([Problem(str(path), None, rule, _FIX, code="state-file-unreadable")]) from None
    found = of_export(content)
    if found is None:
        rule = "is no exported state with resources of one stack"
        raise UserError([Problem(str(path), None, rule, _FIX, code="state-file-invalid")])
    return found


def of_export(content: Any) -> RecordedState | None:
    """The state in the output of `pulumi stack export`; None without resources."""
    deployment = content.get("deployment") if isinstance(content, dict) else None
    rows = deployment.get("resources") if isinstance(deployment, dict) else None
    if deployment is None or not isinstance(rows, list):
        return None
    if not rows or not all(isinstance(one, dict) and _is_urn(one.get("urn")) for one in rows):
        return None
    owners = {tuple(str(one["urn"]).split("::")[:2]) for one in rows}
    if len(owners) != 1:
        return None
    ((stack, project),) = owners
    kept = {
        key: value
        for key, value in deployment.items()
        # Operations that were interrupted are the real cloud's; the key of its secrets is not needed.
        if key not in ("secrets_providers", "pending_operations")
    }
    kept["resources"] = [
        _of_installed(_with_forms(_without_secrets(one))) for one in rows if not one.get("delete")
    ]
    secrets = {str(one["urn"]): tuple(_secret_paths(one.get("inputs") or {})) for one in rows}
    return RecordedState(stack.removeprefix("urn:pulumi:"), project, kept, secrets)


def _is_urn(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("urn:pulumi:") and value.count("::") >= 3


def _with_forms(row: dict[str, Any]) -> dict[str, Any]:
    """A resource of Google Cloud without its computed labels, and with forms in place of secret outputs.

    The provider marks them as secret; programs read into the forms.
    """
    outputs = {
        key: {**_LEFT_OUT, "plaintext": json.dumps(_FORMS[key])}
        if key in _FORMS and one == _LEFT_OUT
        else one
        for key, one in (row.get("outputs") or {}).items()
        if not (key in _LABELS and one == _LEFT_OUT)
    }
    return {**row, "outputs": outputs} if row["type"].startswith("gcp:") else row


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _LEFT_OUT if _is_secret(value) else {key: _without_secrets(one) for key, one in value.items()}
    return [_without_secrets(one) for one in value] if isinstance(value, list) else value


def _is_secret(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get(SIGNATURE) == _SECRET


def _secret_paths(value: Any, path: str = "") -> Iterator[str]:
    if _is_secret(value):
        yield path
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _secret_paths(one, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _secret_paths(one, f"{path}[{index}]")


def _of_installed(row: dict[str, Any]) -> dict[str, Any]:
    """A provider with the installed version: the engine loads those of a state, and has no other ones."""
    package = str(row.get("type")).removeprefix(_PROVIDER)
    version = sdk_version(package) if package in PACKAGES and row["type"].startswith(_PROVIDER) else None
    if version is None:
        return row
    return {
        **row,
        **{
            side: {**row[side], "version": version}
            for side in ("inputs", "outputs")
            if "version" in (row.get(side) or {})
        },
    }
