"""Formats of a report."""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from policies.audit import Audit

Format = Literal["text", "json", "sarif", "junit", "markdown", "html"]


def report(audit: "Audit", format: Format) -> str:
    """The report of an audit in a format."""
    from policies.report import json_report, junit, markdown, sarif, text  # noqa: PLC0415 - slow to import

    if format == "html":
        from policies.report import html_page  # noqa: PLC0415 - slow to import

        return html_page.document(audit)
    writers = {
        "text": text.document, "json": json_report.document, "sarif": sarif.document,
        "junit": junit.document, "markdown": markdown.document,
    }  # fmt: skip
    return writers[format](audit)
