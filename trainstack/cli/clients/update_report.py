"""Output of `trainstack update`: text and JSON."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.engine.plan import PlannedStep
from infra.errors import Problem
from trainstack.replay.report import Replay, counts
from trainstack.stamp.effects import MonthlyPrice, StackEffect
from trainstack.stamp.renewal import Renewal
from trainstack.stamp.verdict import StackVerdict

_MOST = 20
"""Values and steps of a stack that the text shows."""
_KEPT = {
    "deleted-by-you": "you deleted it; the template's change of it is not applied",
    "exists-already": "yours; the template has a new file of that name, which is not written",
    "dropped-by-template": "the template no longer has it; you edited it, so it stays",
}
_NOTES = {
    "removed-by-you": "you removed it; the template's change of it is not applied",
    "edited-by-you": "the template no longer has it; you edited it, so it stays",
    "comment-edited-by-you": "you and the template changed its comment; yours stays",
}


@dataclass(frozen=True)
class UpdateReport:
    """An update that is prepared, with its effects."""

    folder: Path
    found: Renewal
    effects: Sequence[StackEffect]
    replays: Sequence[Replay] = ()
    approved: Sequence[str] = ()
    unproven: Sequence[str] = ()
    """Stacks of the folder that have no resources."""

    @property
    def broken(self) -> list[Problem]:
        """Rules that stacks break only after the change."""
        return [problem for one in self.effects for problem in one.broken]

    @property
    def missing(self) -> list[str]:
        """Approvals that the update needs and that are not given."""
        return [name for one in self.replays for name in one.missing(self.approved)]

    @property
    def errors(self) -> list[str]:
        """Messages of engines that could not finish a replay."""
        return [f"{one.stack}: {error}" for one in self.replays for error in one.errors]

    def lines(self) -> Iterator[str]:
        """The report as text."""
        found = self.found
        if not found.is_current:
            yield f"{self.folder.name}: {found.old.version} to {found.new.version}"
        yield from (f"  step    {one.name}" for one in found.steps)
        for effect in self.effects:
            yield f"  stack {effect.stack}"
            yield from [*_effect_lines(effect)] or ["    no change of values, price, plan or verdict"]
        if found.unresolved:
            yield from (f"  markers {name}:{line} of a conflict" for name, line in found.unresolved.items())
            return
        yield from (f"  {kind:<7} {name}" for name, kind in self._kinds())
        yield from self._merge_lines()
        for replay in self.replays:
            yield from _replay_lines(replay, self.approved)
        yield from (f"  replay of {stack}: nothing is deployed" for stack in self.unproven)

    def _merge_lines(self) -> Iterator[str]:
        merge = self.found.merge
        for name, kept in merge.kept.items():
            more = f"; it may be {kept.renamed_to} now" if kept.renamed_to else ""
            yield f"  keep    {name}: {_KEPT[kept.reason]}{more}"
        for name, merged in merge.files.items():
            for note in merged.notes if merged else ():
                line = f":{note.line}" if note.line else ""
                yield f"  note    {name}{line} {note.key}: {_NOTES[note.reason]}"
        for name, merged in merge.conflicts.items():
            for one in merged.conflicts:
                line = f"line {one.template_line} of the new rendering"
                yield f"  conflict {name}:{one.line} {one.key} ({line})"
                for side, text in (("yours", one.yours), ("before", one.base), ("template", one.template)):
                    yield from (f"    {side:<9} {line}" for line in text.splitlines() or ["(removed)"])

    def _kinds(self) -> Iterator[tuple[str, str]]:
        """Changed files, each with `add`, `change` or `remove`."""
        before = self.found.merge.before
        for name, text in self.found.changes.items():
            yield name, "remove" if text is None else "add" if before[name] is None else "change"

    def document(self, *, written: bool) -> dict[str, Any]:
        """The report as JSON."""
        merge = self.found.merge
        merged = {name: one for name, one in merge.files.items() if one}
        return {
            "client": self.folder.name,
            "from": self.found.old.version,
            "to": self.found.new.version,
            "written": written,
            "steps": [one.name for one in self.found.steps],
            "files": [{"path": name, "change": kind} for name, kind in self._kinds()],
            "kept": [
                {"path": name, "reason": one.reason, "renamed_to": one.renamed_to or None}
                for name, one in merge.kept.items()
            ],
            "notes": [
                {"path": name, **dataclasses.asdict(note)}
                for name, one in merged.items()
                for note in one.notes
            ],
            "conflicts": [
                {"path": name, **dataclasses.asdict(one)}
                for name, text in merge.conflicts.items()
                for one in text.conflicts
            ],
            "unresolved": [{"path": name, "line": line} for name, line in self.found.unresolved.items()],
            "stacks": [_effect(one) for one in self.effects],
            "replays": [_replay(one, self.approved) for one in self.replays],
        }


def _effect_lines(effect: StackEffect) -> Iterator[str]:
    if effect.conflicts:
        names = ", ".join(effect.conflicts)
        yield f"    conflicts in {names}: your side of them is counted here, and all other changes"
    for path, before, after in effect.values[:_MOST]:
        yield f"    {path}: {before!r} to {after!r}"
    if len(effect.values) > _MOST:
        yield f"    and {len(effect.values) - _MOST} more values: --format json has all"
    prices = [_usd(price) for price in (effect.before, effect.after)]
    if prices[0] != prices[1]:
        yield f"    $ per month, min / expected / max: {prices[0]} to {prices[1]}"
    yield from _plan_lines(effect)
    yield from (f"    breaks {problem}" for problem in effect.broken)


def _plan_lines(effect: StackEffect) -> Iterator[str]:
    before, after = effect.verdict_before, effect.verdict_after
    if before is None or after is None:
        return
    kinds = Counter(kind for kind, _ in effect.plan)
    if kinds:
        numbers = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
        yield f"    planned resources: {numbers}"
    yield from (f"      {kind:<7} {name}" for kind, name in effect.plan[:_MOST])
    if len(effect.plan) > _MOST:
        yield f"      and {len(effect.plan) - _MOST} more: --format json has all"
    if before.line != after.line:
        yield f"    policies: {before.line}"
        yield f"          to: {after.line}"
    yield from (f"    judged without settings or waivers: {one}" for one in after.notes)
    yield from (f"    violated   {one}" for one in after.violations if one not in before.violations)


def _usd(price: MonthlyPrice | None) -> str:
    if price is None:
        return "unknown"
    return " / ".join(f"{one:,.0f}" for one in (price.minimum_usd, price.expected_usd, price.maximum_usd))


def _effect(effect: StackEffect) -> dict[str, Any]:
    return {
        "stack": effect.stack,
        "values": [{"path": path, "before": old, "after": new} for path, old, new in effect.values],
        "price_before": effect.before,
        "price_after": effect.after,
        "broken": [str(problem) for problem in effect.broken],
        "conflicts": [*effect.conflicts],
        "plan": [{"change": kind, "resource": name} for kind, name in effect.plan],
        "policies_before": _policies(effect.verdict_before),
        "policies_after": _policies(effect.verdict_after),
    }


def _policies(verdict: StackVerdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {"counts": verdict.counts, "violations": verdict.violations, "notes": verdict.notes}


def _replay_lines(replay: Replay, approved: Sequence[str]) -> Iterator[str]:
    caused, pending = (
        ", ".join(f"{number} {kind}" for kind, number in counts(steps).items() if number) or "no change"
        for steps in (replay.caused, replay.pending)
    )
    yield f"  replay of {replay.stack} ({replay.resources} resources): {caused}"
    if replay.pending:
        yield f"    pending before the update: {pending}"
    yield from (f"    failed: {error}" for error in replay.errors)
    shown = [one for one in replay.caused if one.operation != "create"]
    for one in shown[:_MOST]:
        why = f": {', '.join(one.changed)}" if one.changed else ""
        yield f"    {one.operation} {one.type.rpartition(':')[2]} {one.name}{why}"
    if len(shown) > _MOST:
        yield f"    and {len(shown) - _MOST} more: --format json has all"
    yield from (f"    {kind}: {text}" for kind, text in replay.effects)
    if replay.secret:
        yield f"    unknown, as secrets are left out: {', '.join(replay.secret)}"
    for name in replay.approvals:
        yield f"    {'approved' if name in approved else 'needs --approve'} {name}"


def _replay(replay: Replay, approved: Sequence[str]) -> dict[str, Any]:
    return {
        "stack": replay.stack,
        "resources": replay.resources,
        "caused": [_step(one) for one in replay.caused],
        "pending": [_step(one) for one in replay.pending],
        "effects": [{"kind": kind, "text": text} for kind, text in replay.effects],
        "approvals": [{"name": name, "given": name in approved} for name in replay.approvals],
        "unknown": [*replay.secret],
        "errors": [*replay.errors],
    }


def _step(step: PlannedStep) -> dict[str, Any]:
    return {"operation": step.operation, "type": step.type, "name": step.name, "changed": [*step.changed]}
