"""HTML pages of one file, from Jinja templates: one style, and no request to any host."""

import base64
import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from smoke_training.record.html import style


def rendered(
    template: Path, values: Mapping[str, Any], script: str = "", filters: Mapping[str, Any] | None = None
) -> str:
    """The page of a template, which gets `sheet`, `script` and a content security `policy` beside `values`.

    The common style sheet is followed by the file `page.css` beside the template, if there is one. What UTF-8
    cannot encode becomes a question mark.
    """
    environment = _environment(template.parent)
    environment.filters.update(filters or {})
    own = template.with_name("page.css")
    sheet = style.sheet() + (own.read_text(encoding="utf-8") if own.exists() else "")
    scripts = f"script-src {_hashed(script)}; " if script else ""
    policy = f"default-src 'none'; style-src {_hashed(sheet)}; {scripts}base-uri 'none'; form-action 'none'"
    text = environment.get_template(template.name).render(
        {**values, "sheet": sheet, "script": script, "policy": policy}
    )
    return text.encode(errors="replace").decode()


@functools.cache
def _environment(folder: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip


def _hashed(content: str) -> str:
    """The source expression of a content security policy for a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
