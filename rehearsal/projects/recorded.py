"""The exported state of a stack, ready for a rehearsal: without secrets, with the installed providers."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from infra.engine.plan import PlannedStep
from infra.errors import Problem, UserError
from rehearsal.core.packages import PACKAGES
from rehearsal.core.schema import sdk_version
from rehearsal.core.validate import SIGNATURE
from rehearsal.projects.coverage import Standing, is_resource, standing
from rehearsal.projects.observed import SeenChange

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

    unknown: Mapping[str, int] = field(default_factory=dict)
    """Resources of types that a rehearsal does not know, by type: left out by `emulated`."""

    @property
    def resources(self) -> int:
        """The number of resources."""
        return len(self.deployment["resources"])


Step = TypeVar("Step", PlannedStep, SeenChange)


def without_secrets(
    steps: Sequence[Step], secrets: Mapping[str, tuple[str, ...]]
) -> tuple[list[Step], list[str]]:
    """The steps that something else than a secret causes, and the resources of the other ones."""
    paths = {urn.rpartition("::")[2]: found for urn, found in secrets.items() if found}
    kept, unknown = list[Step](), list[str]()
    for step in steps:
        left_out = paths.get(step.name, ())
        if (
            step.operation in ("update", "replace")
            and step.changed
            and all(any(_within(path, secret) for secret in left_out) for path in step.changed)
        ):
            unknown.append(step.name)
        else:
            kept.append(step)
    return kept, unknown


def _within(path: str, secret: str) -> bool:
    return path == secret or path.startswith((f"{secret}.", f"{secret}["))


def emulated(state: RecordedState) -> RecordedState:
    """The state without resources of types that a rehearsal does not know, and without their providers.

    What depends on one of them stays; a child of one becomes a child of its parent.
    """
    rows = state.deployment["resources"]
    gone = {str(one["urn"]): one for one in rows if _is_unknown(one)}
    kept = [_without_references(one, gone) for one in rows if str(one["urn"]) not in gone]
    counted = Counter(str(one["type"]) for one in gone.values() if not one["type"].startswith(_PROVIDER))
    return replace(
        state, deployment={**state.deployment, "resources": kept}, unknown=dict(sorted(counted.items()))
    )


def _is_unknown(row: Mapping[str, Any]) -> bool:
    token = str(row.get("type"))
    if token.startswith(_PROVIDER):
        package = token.removeprefix(_PROVIDER)
        # Dynamic providers are run by the language host.
        return package not in PACKAGES and not package.startswith("pulumi-")
    return bool(row.get("custom")) and is_resource(token) and standing(token) is Standing.UNKNOWN


def _without_references(row: dict[str, Any], gone: Mapping[str, Any]) -> dict[str, Any]:
    parent = row.get("parent")
    while isinstance(parent, str) and parent in gone:
        parent = gone[parent].get("parent")
    found = {**row, "parent": parent} if parent else {key: one for key, one in row.items() if key != "parent"}
    if "dependencies" in found:
        found["dependencies"] = [one for one in found["dependencies"] or () if one not in gone]
    if "propertyDependencies" in found:
        found["propertyDependencies"] = {
            key: [one for one in urns or () if one not in gone]
            for key, urns in (found["propertyDependencies"] or {}).items()
        }
    if found.get("deletedWith") in gone:
        del found["deletedWith"]
    return found


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
