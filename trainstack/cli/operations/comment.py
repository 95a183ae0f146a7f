"""A preview as a comment on a pull request: changes, price and verdict of the policies, in Markdown."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from infra import cost
from infra.engine.packs import PolicyFinding
from policies.report.markdown import MOST_CHARACTERS, escaped
from policies.report.texts import printable
from trainstack.cli.operations import summary
from trainstack.cli.operations.preview import Preview

_ORDER = ("replace", "delete", "update", "create")
"""Operations, the most dangerous first: those are never cut off."""
_MOST_STEPS = 40
_MOST_ITEMS = 12


def document(preview: Preview, *, judged: bool) -> str:
    """The comment; its first line is for pipelines: the stack, and the digest of the plan for `up --plan`.

    `judged`: a policy pack was loaded. Cut to the length that GitHub accepts.
    """
    made, size = list[str](), 0
    for line in _lines(preview, judged=judged):
        size += len(line) + 1
        if size > MOST_CHARACTERS:
            made += ["", "Truncated to the maximum length of a comment."]
            break
        made.append(line)
    return "\n".join(made)


def _lines(preview: Preview, *, judged: bool) -> Iterator[str]:
    outcome, name = preview.outcome, preview.loaded.spec.name
    yield f"<!-- trainstack {name} plan={preview.plan.digest if outcome.succeeded else ''} -->"
    if outcome.succeeded:
        yield from (f"### Preview of `{name}`", "", f"**{summary.counts(outcome)}**")
    elif outcome.violated:
        yield from (f"### Preview of `{name}`: a policy is violated", "")
    else:
        yield from (f"### Preview of `{name}` failed", "")
        yield from (f"- {_text(error)}" for error in outcome.errors if error)
    yield from ("", *_findings(outcome.findings, judged=judged), "")
    if preview.ends:
        yield "**What ends, or stays**"
        yield from ("", *(f"- {_text(kind)}: {_text(line)}" for kind, line in preview.ends), "")
    yield from (f"- over quota: {_text(str(one))}" for one in preview.shortfalls)
    yield from ("", *_price(preview))
    yield from ("", *_steps(preview))


def _findings(findings: Iterable[PolicyFinding], *, judged: bool) -> Iterator[str]:
    levels = Counter((one.level, one.policy, one.text) for one in findings)
    mandatory = [key for key in levels if key[0] == "mandatory"]
    if not judged:
        yield "Policies: not judged, as no policy pack was given."
        return
    yield f"Policies: **{len(mandatory)} violations**, {len(levels) - len(mandatory)} advisory."
    if mandatory:
        rows = [(policy, text, str(levels[level, policy, text])) for level, policy, text in mandatory]
        yield from ("", *_table(("policy", "finding", "resources"), rows))
    if advisory := [key for key in levels if key not in mandatory]:
        yield from _folded("advisory", (f"- {_text(f'{policy}: {text}')}" for _, policy, text in advisory))


def _price(preview: Preview) -> Iterator[str]:
    spec = preview.loaded.spec
    estimate = cost.estimate(spec, preview.on)
    least, expected, most = map(summary.usd, (estimate.minimum, estimate.expected, estimate.maximum))
    budget = summary.usd(spec.budget.monthly_usd)
    yield f"Price per month: ${least} min, **${expected} expected**, ${most} max; budget ${budget}."
    ordered = sorted(estimate.items, key=lambda one: -(one.expected or 0))
    rows = [
        (one.name, *map(summary.usd, (one.minimum, one.expected, one.maximum)))
        for one in ordered[:_MOST_ITEMS]
    ]
    shown = [*_table(("item", "min $", "expected", "max"), rows)]
    if estimate.not_priced:
        shown += ["", f"Not priced: {_text('; '.join(map(str, estimate.not_priced)))}"]
    yield from _folded("price by item", shown)


def _steps(preview: Preview) -> Iterator[str]:
    steps = sorted(preview.plan.steps, key=lambda one: _ORDER.index(one.operation))
    rows = [(one.operation, one.name, one.type, ", ".join(one.changed)) for one in steps[:_MOST_STEPS]]
    shown = [*_table(("change", "resource", "type", "properties"), rows)]
    if len(steps) > _MOST_STEPS:
        shown += ["", f"And {len(steps) - _MOST_STEPS} more."]
    if steps:
        yield from _folded("changes", shown)


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from (f"<details><summary>{title}</summary>", "", *lines, "", "</details>")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(map(_text, row))} |" for row in rows)


def _text(text: str) -> str:
    return escaped(printable(text))
