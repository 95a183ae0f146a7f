"""Words for people: the first line, the termination message (pure)."""

from smoke_training.evidence import Failure
from smoke_training.model import Check, Culprit, Judgement, Verdict

TERMINATION_LIMIT = 4096  # bytes; Kubernetes cuts a termination message there


def headline(judgement: Judgement) -> str:
    """One line: verdict, decisive check with its figure, suspect."""
    decisive = judgement.decisive
    if judgement.verdict is Verdict.PASS:
        return "PASS " + ", ".join(f"{c.short_id} {_figure(c)}" for c in judgement.checks if c.id in _SHOWN)
    if decisive is None:
        return str(judgement.verdict)
    line = f"{judgement.verdict} {decisive.short_id} {decisive.message}"
    return line + "".join(f"; suspect {_suspect(culprit)}" for culprit in decisive.culprits[:1])


_SHOWN = ("training.scaling_efficiency", "training.straggler", "resume.recovery")


def termination_message(judgement: Judgement) -> str:
    """Headline, every check that did not pass with its figures and evidence, one next action."""
    lines = [headline(judgement)]
    wanted = [c for c in judgement.checks if c.required and c.status not in (Verdict.PASS, Verdict.SKIPPED)]
    for check in wanted:
        lines += ["", f"{check.status} {check.id}: {check.message}"]
        lines += [f"  measured: {text}" for text in [_measured(check)] if text]
        lines += [f"  expected: {text}" for text in [_expected(check)] if text]
        for culprit in check.culprits[:4]:
            lines.append(f"  suspect: {_suspect(culprit)}; cause: {culprit.cause}")
            lines += [f"    - {item}" for item in culprit.evidence[:5]]
    action = next((c.next_action for c in wanted if c.next_action), None)
    if action:
        lines += ["", f"Next: {action}"]
    if judgement.verdict is Verdict.PASS:
        lines += [f"{c.status} {c.id}: {c.message}" for c in judgement.checks]
    lines += [f"Note: {note}" for note in judgement.notes]
    return _cut("\n".join(lines))


def node_message(node: int, devices: Check, failures: list[Failure], ended: str | None) -> str:
    """What a node that does not judge says when its own part broke."""
    lines = [f"ERROR node {node} broke"]
    if devices.status is not Verdict.PASS:
        lines = [
            f"{devices.status} {devices.short_id} on node {node}: {devices.message}",
            f"Next: {devices.next_action}",
        ]
    lines += [f"rank {item.rank} broke in phase {item.phase}: {item.message}" for item in failures]
    return _cut("\n".join([*lines, *([ended] if ended else [])]))


def _cut(text: str) -> str:
    raw = text.encode()
    if len(raw) <= TERMINATION_LIMIT:
        return text
    return raw[: TERMINATION_LIMIT - 4].decode(errors="ignore") + "\n..."


def _figure(check: Check) -> str:
    if check.measured is None or check.measured.value is None:
        return "n/a"
    return f"{check.measured.value:.2f} {check.measured.unit}".replace(" ratio", "").replace(" x", "x")


def _measured(check: Check) -> str | None:
    found = check.measured
    if found is None:
        return None
    if found.value is None:
        return found.reason
    interval = f", 95% interval {found.ci[0]:.4g} .. {found.ci[1]:.4g}" if found.ci else ""
    return f"{found.value:.4g} {found.unit} ({found.estimator}, n={found.n}{interval})"


def _expected(check: Check) -> str | None:
    wanted = check.expected
    if wanted is None:
        return None
    if wanted.value is None:
        return f"unknown: {wanted.reason}"
    limit = f", limit {wanted.floor:.4g}" if wanted.floor is not None else ""
    return f"{wanted.value:.4g}{limit} ({wanted.kind}: {wanted.source})"


def _suspect(culprit: Culprit) -> str:
    where = f" on node {culprit.node}" if culprit.node else ""
    if culprit.kind != "rank" or culprit.score is None:
        return f"{culprit.kind} {culprit.id}{where}: {culprit.cause}"
    interval = f" (95% interval {culprit.ci[0]:.2f} .. {culprit.ci[1]:.2f})" if culprit.ci else ""
    return f"rank {culprit.id}{where}: computes {culprit.score:.2f}x slower than its peers{interval}"
