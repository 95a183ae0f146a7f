"""Baseline: a former audit. Violations that it contains are reported as known; only new ones count.

A violation is the same if rule and URN are the same. So a resource with a new name or parent has a new
violation, and the old one is reported as resolved. An undetermined outcome is never known.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, get_args

from policies.evaluate import SWITCHED_OFF, Result, RuleOutcome
from policies.resource import Resource
from policies.sources.files import (
    FileProblems,
    each_line,
    file_error,
    first_line,
    lines,
    open_file,
    parsed,
    read_all,
)

SCHEMA = "trainstack.audit/1"
_FIX = "Write it with: trainstack audit ... --format json, or take results.jsonl of an evidence bundle."
_SMALLER = "Take results.jsonl of its evidence bundle, which may be of any size."
OPEN: tuple[Result, ...] = ("fail", "waived", "undetermined")
"""Results that a report lists as findings."""
_TEXTS = ("rule", "urn", "result", "message", "path")


@dataclass(frozen=True)
class KnownFinding:
    """A finding of the former audit."""

    rule: str
    urn: str
    """Empty for the stack."""
    result: str
    message: str = ""
    path: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Rule and URN, which identify it."""
        return self.rule, self.urn


@dataclass(frozen=True)
class AuditBaseline:
    """The findings of a former audit of the same stack."""

    findings: Sequence[KnownFinding] = ()

    def marked(self, outcomes: Iterable[RuleOutcome]) -> list[RuleOutcome]:
        """The outcomes, with findings of the baseline as `known`.

        A resource has at most as many known violations of a rule as before: one with another message counts
        as new.
        """
        there = {one.key for one in self.findings}
        found = [
            replace(one, known=one.result in OPEN and one.result != "fail" and _key(one) in there)
            for one in outcomes
        ]
        failing = [index for index, one in enumerate(found) if one.result == "fail"]
        before = [one for one in self.findings if one.result == "fail"]
        left = Counter(one.key for one in before)
        same = {(*one.key, one.message, one.path) for one in before}
        exact = [i for i in failing if (*_key(found[i]), found[i].message, found[i].path) in same]
        for index in dict.fromkeys([*exact, *failing]):
            key = _key(found[index])
            if left[key] > 0:
                left[key] -= 1
                found[index] = replace(found[index], known=True)
        return found

    def resolved(self, outcomes: Sequence[RuleOutcome]) -> tuple[KnownFinding, ...]:
        """The violations that no longer occur, of rules that were evaluated."""
        still = {_key(one) for one in outcomes if one.result in OPEN}
        skipped = {
            one.rule.id
            for one in outcomes
            if one.message == SWITCHED_OFF or (one.result == "undetermined" and one.resource is None)
        }
        evaluated = {one.rule.id for one in outcomes} - skipped
        return tuple(
            one
            for one in self.findings
            if one.result == "fail" and one.key not in still and one.rule in evaluated
        )


def read(path: Path, resources: Iterable[Resource]) -> AuditBaseline:
    """The findings in a report. Raises UserError for any other file, and for the report of another stack."""
    file = str(path)
    problems = FileProblems(file)
    findings: list[KnownFinding] = []
    urns: set[str] = set()
    with open_file(path, _FIX) as stream:
        named, rows = _rows(stream, file, problems)
        for where, row in rows:
            texts = {key: problems.wants(row, key, str, where, _FIX) for key in _TEXTS}
            if texts["result"] not in get_args(Result) or not texts["rule"]:
                message = "must have a rule and its result"
                problems.add(where, row.get("result"), message, _FIX, "baseline-row-invalid")
            urns.add(texts["urn"])
            if texts["result"] in OPEN:
                findings.append(KnownFinding(**texts))
    problems.end()
    stacks, ours = named or stacks_of(urns), stacks_of(one.urn for one in resources)
    if stacks != ours:
        rule = f"is about {_named(stacks)}, and this audit about {_named(ours)}"
        raise file_error(file, rule, "Take a report of the same stack.", "baseline-of-other-stack")
    return AuditBaseline(tuple(findings))


_Rows = Iterator[tuple[str, dict[str, Any]]]


def _rows(stream: BinaryIO, file: str, problems: FileProblems) -> tuple[frozenset[str], _Rows]:
    """The stacks that a report names, and (path, row) of each of its outcomes.

    Results of a bundle are read line by line: they have a row per resource and rule, without a size limit.
    """
    begun = first_line(stream)
    if b'"rule"' in begun and b'"schema"' not in begun:
        rows = lines(each_line(stream, file, begun), file, _FIX)
        return frozenset(), _objects(((f"line {number}", row) for number, row in rows), problems)
    report = parsed(read_all(stream, file, _FIX, begun, _SMALLER), file, _FIX)
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise file_error(file, f"is no report of {SCHEMA}", _FIX, "baseline-not-a-report")
    stacks = frozenset(map(str, problems.wants(report, "stacks", list, "", _FIX)))
    outcomes = problems.wants(report, "outcomes", list, "", _FIX)
    return stacks, _objects(((f"outcomes[{index}]", row) for index, row in enumerate(outcomes)), problems)


def _objects(rows: Iterable[tuple[str, Any]], problems: FileProblems) -> _Rows:
    for where, row in rows:
        if isinstance(row, dict):
            yield where, row
        else:
            problems.add(where, row, "must be an object", _FIX, "file-value-wrong-type")


def _named(stacks: frozenset[str]) -> str:
    return " and ".join(sorted(stacks)) or "none that it names"


def _key(outcome: RuleOutcome) -> tuple[str, str]:
    return outcome.rule.id, outcome.urn


def stacks_of(urns: Iterable[str]) -> frozenset[str]:
    """PROJECT/STACK of Pulumi URNs; account and region of resources that were read from an account."""
    found = frozenset(filter(None, map(_stack_of, urns)))
    regional = {one.rpartition(" ")[0] for one in found if one.count(" ") == 2}
    return found - regional  # resources without a region, such as roles, are in the snapshot of every region


def _stack_of(urn: str) -> str:
    if urn.startswith("live:"):
        return " ".join(("account", *urn.split(":", 3)[1:3])).strip()
    stack, _, rest = urn.partition("::")
    project, _, _ = rest.partition("::")
    return f"{project}/{stack.removeprefix('urn:pulumi:')}" if stack.startswith("urn:pulumi:") else ""
