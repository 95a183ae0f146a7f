"""Markdown files of a bundle, from their templates (pure)."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def rendered(template: str, **values: Any) -> str:
    """The text of a template beside this file."""
    return _environment().get_template(template).render(values)


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=False,  # noqa: S701 - Markdown for people, not a page
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["format_row"] = _row
    return made


def _row(row: Mapping[str, str], form: str) -> str:
    """A row in a form such as `{name}: {why}`, on one line."""
    return " ".join(form.format_map(row).split())
