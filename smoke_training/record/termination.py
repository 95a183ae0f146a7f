"""Readable messages and the record of them that a pod leaves: headline, termination message (pure).

A failed `pulumi up` shows the termination message of the gate's pod: in 4096 bytes the measured figure with
its interval, the expected one with its source, the indifference zone, culprits with causes, and one action.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from smoke_training.evidence.world import RankFailure
from smoke_training.model import Check, Culprit, Judgement, Verdict
from smoke_training.record import formatting
from smoke_training.verdict_record import VerdictRecord

TERMINATION_LIMIT = 4096  # bytes; Kubernetes cuts a termination message there
# Bytes that the parts may take: the first four always fit together, so that none of them is ever cut off.
_HEADLINE, _BLOCK, _ACTION, _NOTES = 1000, 2000, 500, 400
_SENTENCE, _FACT = 600, 240


def headline(judgement: Judgement) -> str:
    """Return one line: verdict, decisive check with its figure, suspect."""
    decisive = judgement.decisive
    if judgement.verdict is Verdict.PASS:
        figures = [c for c in judgement.checks if c.required and c.measured]
        named = [c for c in figures if c.id in _SHOWN] or figures
        shown = [f"{c.short_id} {_figure(c)}" for c in named]
        worse = [c for c in judgement.checks if c.id == "baseline.regression" and c.status is Verdict.FAIL]
        return "; ".join(["PASS " + ", ".join(shown), *(f"but {check.message}" for check in worse)])
    if decisive is None:
        return str(judgement.verdict)
    line = f"{judgement.verdict} {decisive.short_id} {decisive.message}"
    return line + "".join(f"; suspect {_suspect(culprit)}" for culprit in decisive.culprits[:1])


_SHOWN = ("training.scaling_efficiency", "training.straggler", "resume.recovery")


def termination_message(judgement: Judgement, accept: Sequence[str] = ()) -> str:
    """Return headline, decisive check, next action, then other checks that did not pass, as far as they fit.

    `accept` are the verdicts that open the gate; they are named when this one does not.
    """
    wanted = _wanted(judgement)
    lines = [_short(headline(judgement), _HEADLINE)]
    if wanted:
        lines += ["", *_bounded(list(_block(wanted[0])))]
    if accept and str(judgement.verdict) not in accept:
        lines.append(f"Gate: closed; it opens for {', '.join(accept)}.")
    if action := next((check.next_action for check in wanted if check.next_action), None):
        lines += ["", f"Next: {_short(action, _ACTION)}"]
    for check in judgement.checks if judgement.verdict is Verdict.PASS else ():
        zone = f" (indifference zone {formatting.interval(check.zone)})" if check.zone else ""
        lines.append(f"{check.status} {check.id}: {_short(check.message, _SENTENCE)}{zone}")
    lines += [_short(f"Note: {note}", _NOTES) for note in judgement.notes]
    return _fitted(lines, wanted[1:])


def record(judgement: Judgement, accept: Sequence[str] = ()) -> VerdictRecord:
    """The termination message as a record."""
    return _record(str(judgement.verdict), termination_message(judgement, accept).splitlines())


def node_record(
    node: int, devices: Check, failures: list[RankFailure], ended: str | None, over: tuple[str, str] | None
) -> VerdictRecord:
    """The record of a node that does not judge; verdict and headline of the run come first where known."""
    lines = node_message(node, devices, failures, ended).splitlines()
    if over is not None:
        return _record(over[0], [over[1], *lines])
    return _record(str(Verdict.ERROR if devices.status is Verdict.PASS else devices.status), lines)


def _record(verdict: str, lines: Sequence[str]) -> VerdictRecord:
    return VerdictRecord(verdict, lines[0], details=tuple(filter(str.strip, lines[1:])))


def node_message(node: int, devices: Check, failures: list[RankFailure], ended: str | None) -> str:
    """Return the message of a failed node that does not judge."""
    lines = [f"ERROR node {node} broke"]
    if devices.status is not Verdict.PASS:
        lines = [
            f"{devices.status} {devices.short_id} on node {node}: {devices.message}",
            f"Next: {devices.next_action}",
        ]
    lines += [f"rank {item.rank} broke in phase {item.phase}: {item.message}" for item in failures]
    return _cut("\n".join([*lines, *([ended] if ended else [])]))


def _wanted(judgement: Judgement) -> list[Check]:
    """Return the required checks that decided against a pass: the decisive one, then the worst ones."""
    order = [Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE]
    if judgement.verdict is Verdict.SKIPPED:
        order = [Verdict.SKIPPED]
    found = [check for check in judgement.checks if check.required and check.status in order]
    return sorted(found, key=lambda check: order.index(check.status))


_SUSPECT, _EVIDENCE = "  suspect: ", "    - "


def _block(check: Check) -> Iterator[str]:
    yield f"{check.status} {check.id}: {_short(check.message, _SENTENCE)}"
    known = dataclasses.asdict(check)
    facts = {
        "measured": formatting.joined(formatting.measured(known)),
        "expected": formatting.joined(formatting.expected(known)),
        "noise": ", ".join(f"{name} {value:.3g}" for name, value in check.noise.items() if value is not None),
    }
    for name, text in facts.items():
        if text:
            yield f"  {name}: {_short(text, _FACT)}"
    for culprit in check.culprits[:4]:
        yield f"{_SUSPECT}{_short(_suspect(culprit), _FACT)}; cause: {culprit.cause}"
        yield from (f"{_EVIDENCE}{_short(item, _FACT)}" for item in culprit.evidence[:5])
    if len(check.culprits) > 4:
        yield f"  and {len(check.culprits) - 4} more suspects"


def _bounded(block: list[str]) -> list[str]:
    """Drop excess evidence from a block, then its lesser suspects."""
    for kind, kept in ((_EVIDENCE, 0), (_SUSPECT, 1)):
        found = [index for index, line in enumerate(block) if line.startswith(kind)][kept:]
        while found and len("\n".join(block).encode()) > _BLOCK:
            del block[found.pop()]
    return block


def _fitted(lines: list[str], others: Sequence[Check]) -> str:
    """Return the lines, and after them as many complete blocks of other checks as the limit allows."""
    text = "\n".join(lines)
    for index, check in enumerate(others):
        block = "\n".join(["", "", *_block(check)])
        if len((text + block + _also(others[index + 1 :])).encode()) > TERMINATION_LIMIT:
            return _cut(text + _also(others[index:]))
        text += block
    return _cut(text)


def _also(checks: Sequence[Check]) -> str:
    return f"\n\nAlso: {', '.join(f'{item.status} {item.id}' for item in checks)}" if checks else ""


def _cut(text: str, limit: int = TERMINATION_LIMIT, mark: str = "\n...") -> str:
    raw = text.encode(errors="replace")
    return raw.decode() if len(raw) <= limit else raw[: limit - len(mark)].decode(errors="ignore") + mark


def _short(text: str, limit: int) -> str:
    return _cut(" ".join(text.split()), limit, " ...")


def _figure(check: Check) -> str:
    if check.measured is None or check.measured.value is None:
        return "n/a"
    return f"{check.measured.value:.2f} {check.measured.unit}".replace(" ratio", "").replace(" x", "x")


def _suspect(culprit: Culprit) -> str:
    where = f" on node {culprit.node}" if culprit.node else ""
    interval = f" (95% interval {culprit.ci[0]:.2f} .. {culprit.ci[1]:.2f})" if culprit.ci else ""
    if culprit.kind == "rank" and culprit.score is not None:
        return f"rank {culprit.id}{where}: computes {culprit.score:.2f}x slower than its peers{interval}"
    score = f", score {culprit.score:.3g}{interval}" if culprit.score is not None else ""
    return f"{culprit.kind} {culprit.id}{where}: {culprit.cause}{score}"
