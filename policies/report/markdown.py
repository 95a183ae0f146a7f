"""The findings as a comment below a pull request."""

import re
from collections.abc import Iterator, Sequence

from policies.audit import Audit
from policies.evaluate import Outcome
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

# GitHub takes 65,536 characters (an answer of its API: "body is too long (maximum is 65536 characters)").
MOST_CHARACTERS = 60_000
# What CommonMark, its tables and GitHub (mentions, references to issues) read as more than text.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~@&-])")


def document(audit: Audit) -> str:
    """The verdict, a table of the violations, and folded lists of the rest; cut where it would be refused."""
    verdict = audit.code.name.lower().replace("_", " ")
    made = [f"### Policy audit: {verdict}", "", f"{total(audit)}.", ""]
    size = sum(map(len, made))
    for line in _lines(audit):
        if size + len(line) > MOST_CHARACTERS:
            made += ["", "The rest is left out: it would be longer than a comment may be."]
            break
        made.append(line)
        size += len(line) + 1
    return "\n".join(made)


def _lines(audit: Audit) -> Iterator[str]:
    failed = of(audit, "fail")
    if failed:
        yield from ("| severity | rule | where | found | fix |", "|---|---|---|---|---|")
        for one in failed:
            said = "; ".join(filter(None, (found(one), expired(one))))
            yield _row([one.rule.severity, one.rule.id, place(one), said, printable(one.fix)])
        yield ""
    yield from _list("Could not be judged", [(one, found(one)) for one in of(audit, "undetermined")])
    yield from _list("Waived", [(one, waived(one)) for one in of(audit, "waived")])
    if audit.resolved:
        yield from (f"**Resolved since the baseline: {len(audit.resolved)}**", "")
        yield from (f"- {_plain(said)}" for said in resolved(audit))
        yield ""
    if audit.differences:
        yield from (f"**{_plain(DIFFER)}: {len(audit.differences)}**", "")
        yield from (f"- {what} {_plain(said)}" for what, said in differences(audit))
        yield ""
    yield from (f"- {_plain(printable(said))}" for said in audit.advice)


def _list(title: str, rows: Sequence[tuple[Outcome, str]]) -> Iterator[str]:
    if rows:
        yield from (f"**{title}: {len(rows)}**", "")
        yield from (f"- {_plain(f'{one.rule.id} {place(one)}: {said}')}" for one, said in rows)
        yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
