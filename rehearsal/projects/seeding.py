"""`trainstack rehearse seed`: register resources that a program refers to and does not make."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from infra.errors import Problem, UserError
from rehearsal.core.validate import SIGNATURE
from rehearsal.gcp.existing import is_placed
from rehearsal.projects import homes
from rehearsal.projects.project import read

_CLOUDS = ("aws:", "gcp:")
_FORM = "Write a list of {type: aws:ec2/vpc:Vpc, id: vpc-0123456789abcdef0, outputs: {...}}."


def seed(file: Path, folder: Path | None) -> str:
    """Register the resources of a file: a list in YAML, or the output of `pulumi stack export`.

    Raises UserError with every problem of the file; then nothing is registered.
    """
    resources = list(_resources(file))
    home = homes.of_project(read(folder)) if folder else homes.of_checkout()
    new = home.seed(resources)
    known = len(resources) - len(new)
    return f"registered: {', '.join(new) or 'nothing'}" + (f"; {known} registered before" if known else "")


def _resources(file: Path) -> Iterator[dict[str, Any]]:
    content = _content(file)
    exported = isinstance(content, dict) and "deployment" in content
    found = (content["deployment"] or {}).get("resources") if exported else content
    if not isinstance(found, list):
        raise UserError([Problem(str(file), None, "is no list of resources", _FORM, code="seed-not-a-list")])
    yield from rows(found, file.name, exported=exported)


def rows(resources: Sequence[Any], source: str, *, exported: bool = True) -> Iterator[dict[str, Any]]:
    """The form that `Rehearsal.seed` takes; of an exported state, resources of clouds alone.

    Raises UserError with every problem; `source` names them there.
    """
    problems = []
    for index, row in enumerate(resources):
        if exported and not (
            row.get("custom") and str(row.get("type")).startswith(_CLOUDS) and row.get("id")
        ):
            continue  # providers, components, Kubernetes objects
        wrong = [
            key for key in ("type", "id") if not isinstance(row, dict) or not isinstance(row.get(key), str)
        ]
        if wrong or row["type"].count(":") != 2 or not row["type"].startswith(_CLOUDS):
            rule, code = "needs a type of aws or gcp and an id", "seed-needs-type-and-id"
        elif row["type"].startswith("gcp:") and not is_placed(row):
            rule, code = "its project is not known", "seed-needs-project"
        else:
            rule = code = ""
        if rule:
            problems.append(Problem(f"{source}[{index}]", row, rule, _FORM, code=code))
            continue
        yield {
            key: _without_secrets(row[key])
            for key in ("type", "id", "account", "region", "project", "outputs")
            if key in row
        }
    if problems:
        raise UserError(problems)


def _content(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8")
        return json.loads(text) if file.suffix == ".json" else YAML(typ="safe").load(text)
    except (OSError, ValueError, YAMLError) as error:
        rule, fix = f"cannot be read: {error}", "Name a YAML or JSON file."
        raise UserError([Problem(str(file), None, rule, fix, code="seed-unreadable-file")]) from None


def _without_secrets(value: Any) -> Any:
    """The value without secrets, which the engine encrypted for another stack."""
    if isinstance(value, Mapping):
        return {key: _without_secrets(one) for key, one in value.items() if not _is_secret(one)}
    return (
        [_without_secrets(one) for one in value if not _is_secret(one)] if isinstance(value, list) else value
    )


def _is_secret(value: Any) -> bool:
    return isinstance(value, Mapping) and SIGNATURE in value
