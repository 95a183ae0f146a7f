"""The page of a report from its document alone: pictures first, tables beneath."""

import base64
import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from smoke_training.record.html import style
from trainstack.dossier.html import charts, structure
from trainstack.dossier.html.figures import FORMATS, Placed, figure

_FOLDER = Path(__file__).parent


def page(document: Mapping[str, Any]) -> str:
    """The page about a stack; the same document gives the same text."""
    return _rendered("page.html.j2", document)


def fleet_page(document: Mapping[str, Any]) -> str:
    """The page about many stacks."""
    return _rendered("fleet.html.j2", document)


def _rendered(template: str, document: Mapping[str, Any]) -> str:
    sheet = style.sheet() + (_FOLDER / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    text = (
        _environment()
        .get_template(template)
        .render(
            policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
            sheet=sheet,
            doc=Placed(document),
            charts=charts,
            structure=structure,
            sizes=(structure.WIDE, structure.NARROW),
        )
    )
    return text.encode(errors="replace").decode()


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for name in FORMATS:
        made.filters[name] = functools.partial(_shown, form=name)
    return made


def _shown(placed: Placed, form: str) -> Any:
    return figure(placed, form)
