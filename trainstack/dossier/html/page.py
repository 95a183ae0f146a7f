"""The page of a report from its document alone: pictures first, tables beneath."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra import pages
from trainstack.dossier.html import charts, structure
from trainstack.dossier.html.figures import FORMATS, Placed, figure


def page(document: Mapping[str, Any]) -> str:
    """The page about a stack; the same document gives the same text."""
    return _rendered("page.html.j2", document)


def fleet_page(document: Mapping[str, Any]) -> str:
    """The page about many stacks."""
    return _rendered("fleet.html.j2", document)


def _rendered(template: str, document: Mapping[str, Any]) -> str:
    values = {
        "doc": Placed(document),
        "charts": charts,
        "structure": structure,
        "sizes": (structure.WIDE, structure.NARROW),
    }
    formats = {name: functools.partial(_shown, form=name) for name in FORMATS}
    return pages.rendered(Path(__file__).with_name(template), values, filters=formats)


def _shown(placed: Placed, form: str) -> Any:
    return figure(placed, form)
