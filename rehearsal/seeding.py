"""`trainstack rehearse seed`: tells the emulated clouds what a program refers to and does not make."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from infra.errors import Problem, UserError
from rehearsal import homes
from rehearsal.core.validate import SIGNATURE
from rehearsal.gcp.existing import is_placed
from rehearsal.projects.project import read

_CLOUDS = ("aws:", "gcp:")
_FORM = "Write a list of {type: aws:ec2/vpc:Vpc, id: vpc-0123456789abcdef0, outputs: {...}}."


def seed(file: Path, folder: Path | None) -> str:
    """Make the resources of a file known: a list in YAML, or what `pulumi stack export` writes.

    Raises UserError with everything that is wrong in the file; then nothing is made known.
    """
    resources = list(_resources(file))
    home = homes.of_project(read(folder)) if folder else homes.of_checkout()
    new = home.seed(resources)
    known = len(resources) - len(new)
    return f"made known: {', '.join(new) or 'nothing'}" + (f"; {known} known already" if known else "")


def _resources(file: Path) -> Iterator[dict[str, Any]]:
    content = _content(file)
    exported = isinstance(content, dict) and "deployment" in content
    rows = (content["deployment"] or {}).get("resources") if exported else content
    if not isinstance(rows, list):
        raise UserError([Problem(str(file), None, "is no list of resources", _FORM)])
    problems = []
    for index, row in enumerate(rows):
        if exported and not (
            row.get("custom") and str(row.get("type")).startswith(_CLOUDS) and row.get("id")
        ):
            continue  # providers, components, Kubernetes objects
        wrong = [
            key for key in ("type", "id") if not isinstance(row, dict) or not isinstance(row.get(key), str)
        ]
        if wrong or row["type"].count(":") != 2 or not row["type"].startswith(_CLOUDS):
            problems.append(
                Problem(f"{file.name}[{index}]", row, "needs a type of aws or gcp and an id", _FORM)
            )
            continue
        if row["type"].startswith("gcp:") and not is_placed(row):
            problems.append(Problem(f"{file.name}[{index}]", row, "its project is not known", _FORM))
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
        raise UserError(
            [Problem(str(file), None, f"cannot be read: {error}", "Name a YAML or JSON file.")]
        ) from None


def _without_secrets(value: Any) -> Any:
    """Leaves out what the engine encrypted for another stack."""
    if isinstance(value, Mapping):
        return {key: _without_secrets(one) for key, one in value.items() if not _is_secret(one)}
    return (
        [_without_secrets(one) for one in value if not _is_secret(one)] if isinstance(value, list) else value
    )


def _is_secret(value: Any) -> bool:
    return isinstance(value, Mapping) and SIGNATURE in value
