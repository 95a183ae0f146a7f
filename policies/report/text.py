"""Text report for a terminal: findings by severity, each with its fix."""

from collections.abc import Iterator

from policies.audit import Audit
from policies.report.texts import (
    DIFFER,
    differences,
    ending,
    expired,
    found,
    of,
    place,
    printable,
    resolved,
    total,
    waived,
)


def document(audit: Audit) -> str:
    """A paragraph per violation, a line per waived or undetermined outcome, and the totals."""
    return "\n".join(_lines(audit))


def _lines(audit: Audit) -> Iterator[str]:
    failed = of(audit, "fail")
    for one in (one for one in failed if not one.known):
        yield f"{one.rule.severity.upper():8} {one.rule.id} {place(one)}"
        yield f"         {one.rule.title}"
        yield f"         found: {found(one)}"
        yield f"         fix:   {printable(one.fix)}"
        if expired(one):
            yield f"         {expired(one)}"
        yield ""
    for title, rows in (
        ("Known from the baseline:", [(one, found(one)) for one in failed if one.known]),
        ("Undetermined:", [(one, found(one)) for one in of(audit, "undetermined")]),
        ("Waived:", [(one, waived(one)) for one in of(audit, "waived")]),
    ):
        if rows:
            yield title
            yield from (f"  {one.rule.id} {place(one)}: {line}" for one, line in rows)
            yield ""
    if audit.resolved:
        yield "Resolved since the baseline:"
        yield from (f"  {line}" for line in resolved(audit))
        yield ""
    if audit.differences:
        yield f"{DIFFER}:"
        yield from (f"  {what:9} {line}" for what, line in differences(audit))
        yield ""
    if audit.advice:
        yield from (f"Advice: {printable(line)}" for line in audit.advice)
        yield ""
    yield total(audit)
    yield ending(audit)
