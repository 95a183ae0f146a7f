"""The files of a report: the page and the document beside it, both or none."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from infra.errors import Problem, UserError
from trainstack.dossier.html import page as html

_SUFFIX = ".html"


def check(path: Path, *, force: bool) -> None:
    """Raise UserError where the page, or the document beside it, cannot be written."""
    problems = []
    if path.suffix != _SUFFIX:
        fix = f"Such as {path.name or 'report'}{_SUFFIX}."
        problems.append(Problem("--out", str(path), f"must end with {_SUFFIX}", fix, code="report-not-html"))
    if not path.parent.is_dir():
        rule, fix = f"{path.parent} is no folder", "Make the folder first."
        problems.append(Problem("--out", str(path), rule, fix, code="report-folder-missing"))
    for one in (path, path.with_suffix(".json")):
        if one.is_dir() or (not force and (one.exists() or one.is_symlink())):
            rule, fix = "exists", "Name another file, or add --force."
            problems.append(Problem("--out", str(one), rule, fix, code="report-exists"))
    if problems:
        raise UserError(problems)


def write(
    path: Path, document: Mapping[str, Any], page: Callable[[Mapping[str, Any]], str] = html.page
) -> Path:
    """Write the page and the document beside it, whose path is returned. Raises UserError where it cannot."""
    beside = path.with_suffix(".json")
    texts = {beside: f"{json.dumps(document, indent=1)}\n", path: page(document)}
    drafts = {one: one.with_name(f".{one.name}.{os.getpid()}") for one in texts}
    try:
        for one, text in texts.items():
            drafts[one].write_text(text, encoding="utf-8")
        for one, draft in drafts.items():
            draft.replace(one)
    except OSError as error:
        rule, fix = f"cannot be written: {error.strerror}", "Choose a folder with room that you can write to."
        problem = Problem("--out", str(path), rule, fix, code="report-not-written")
        raise UserError([problem]) from error
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
    return beside
