"""One page about a fleet command: self-contained HTML, which requests nothing from other hosts."""

from pathlib import Path

from infra import pages
from trainstack.fleet.outcome import State
from trainstack.fleet.report.document import FleetReport, headline, price_of


def document(report: FleetReport) -> str:
    """The text of the page."""
    values = {
        "report": report,
        "rows": sorted(report.outcomes, key=lambda one: (one.state is State.DONE, one.id)),
        "headline": headline,
        "price_of": price_of,
    }
    return pages.rendered(Path(__file__).with_name("page.html.j2"), values)
