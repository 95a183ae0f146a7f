"""The findings for a reader at a terminal: the most severe first, the fix below each."""

from collections.abc import Iterator

from policies.audit import Audit
from policies.report.wording import (
    DIFFER,
    differences,
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
    """A paragraph for each violation, a line for each outcome that is waived or unknown, and the sum."""
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
        ("Could not be judged:", [(one, found(one)) for one in of(audit, "undetermined")]),
        ("Waived:", [(one, waived(one)) for one in of(audit, "waived")]),
    ):
        if rows:
            yield title
            yield from (f"  {one.rule.id} {place(one)}: {said}" for one, said in rows)
            yield ""
    if audit.resolved:
        yield "Resolved since the baseline:"
        yield from (f"  {said}" for said in resolved(audit))
        yield ""
    if audit.differences:
        yield f"{DIFFER}:"
        yield from (f"  {what:9} {said}" for what, said in differences(audit))
        yield ""
    if audit.advice:
        yield from (f"Advice: {printable(said)}" for said in audit.advice)
        yield ""
    yield total(audit)
