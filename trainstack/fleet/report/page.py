"""One page about a fleet command: self-contained HTML, which requests nothing from other hosts."""

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from smoke_training.record.html import style
from trainstack.fleet.outcome import State
from trainstack.fleet.report.document import FleetReport, headline, price_of


def document(report: FleetReport) -> str:
    """The text of the page."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    sheet = style.sheet()
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    return environment.get_template("page.html.j2").render(
        report=report,
        rows=sorted(report.outcomes, key=lambda one: (one.state is State.DONE, one.id)),
        headline=headline,
        price_of=price_of,
        sheet=sheet,
        policy=f"default-src 'none'; style-src 'sha256-{digest}'",
    )
