"""Markdown report for a comment on a pull request."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from policies.report.texts import (
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

if TYPE_CHECKING:
    from policies.audit import Audit
    from policies.evaluate import RuleOutcome

# GitHub accepts 65,536 characters (error of its API: "body is too long (maximum is 65536 characters)").
MOST_CHARACTERS = 60_000
# Characters with a meaning in CommonMark, its tables and GitHub (mentions, references to issues).
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~@&-])")


def document(audit: "Audit") -> str:
    """The result, a table of violations, and lists of the rest; truncated to the limit of GitHub."""
    verdict = audit.code.name.lower().replace("_", " ")
    made = [f"### Policy audit: {verdict}", "", f"{total(audit)}.", ""]
    size = sum(map(len, made))
    for line in _lines(audit):
        if size + len(line) > MOST_CHARACTERS:
            made += ["", "Truncated to the maximum length of a comment."]
            break
        made.append(line)
        size += len(line) + 1
    return "\n".join(made)


def _lines(audit: "Audit") -> Iterator[str]:
    failed = of(audit, "fail")
    if failed:
        yield from ("| severity | rule | where | found | fix |", "|---|---|---|---|---|")
        for one in failed:
            text = "; ".join(filter(None, (found(one), expired(one))))
            yield _row([one.rule.severity, one.rule.id, place(one), text, printable(one.fix)])
        yield ""
    yield from _list("Undetermined", [(one, found(one)) for one in of(audit, "undetermined")])
    yield from _list("Waived", [(one, waived(one)) for one in of(audit, "waived")])
    if audit.resolved:
        yield from (f"**Resolved since the baseline: {len(audit.resolved)}**", "")
        yield from (f"- {escaped(text)}" for text in resolved(audit))
        yield ""
    if audit.differences:
        yield from (f"**{escaped(DIFFER)}: {len(audit.differences)}**", "")
        yield from (f"- {what} {escaped(text)}" for what, text in differences(audit))
        yield ""
    yield from (f"- {escaped(printable(text))}" for text in audit.advice)


def _list(title: str, rows: Sequence[tuple["RuleOutcome", str]]) -> Iterator[str]:
    if rows:
        yield from (f"**{title}: {len(rows)}**", "")
        yield from (f"- {escaped(f'{one.rule.id} {place(one)}: {text}')}" for one, text in rows)
        yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(escaped, cells))} |"


def escaped(text: str) -> str:
    """A text without meaning in CommonMark and on GitHub."""
    return _SPECIAL.sub(r"\\\1", text)
