"""A former audit: violations that were there already are told as known, and only new ones count.

A violation is the same if rule and URN are the same. So a resource that was renamed, or that moved to another
parent, has a new violation, and the old one is told as resolved. What cannot be judged is never known.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, get_args

from policies.evaluate import SWITCHED_OFF, Outcome, Result
from policies.resource import Resource
from policies.sources.document import Complaints, each_line, first_line, lines, opened, parsed, refuse, whole

SCHEMA = "trainstack.audit/1"
_FIX = "Write it with: trainstack audit ... --format json, or take results.jsonl of an evidence bundle."
_SMALLER = "Take results.jsonl of its evidence bundle, which may be of any size."
OPEN: tuple[Result, ...] = ("fail", "waived", "undetermined")
"""What a report shows as a finding."""
_TEXTS = ("rule", "urn", "result", "message", "path")


@dataclass(frozen=True)
class Known:
    """A finding of the former audit."""

    rule: str
    urn: str
    """Empty where it is about the stack."""
    result: str
    message: str = ""
    path: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """By what it is found again."""
        return self.rule, self.urn


@dataclass(frozen=True)
class Baseline:
    """The findings of a former audit of the same stack."""

    findings: Sequence[Known] = ()

    def marked(self, outcomes: Iterable[Outcome]) -> list[Outcome]:
        """The outcomes, with the findings that were there before as `known`.

        A resource never has more known violations of a rule than it had: the one that is told in other words
        is the new one.
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

    def resolved(self, outcomes: Sequence[Outcome]) -> tuple[Known, ...]:
        """The violations that are gone: the rule was asked, and has nothing to say of them any more."""
        still = {_key(one) for one in outcomes if one.result in OPEN}
        silent = {
            one.rule.id
            for one in outcomes
            if one.message == SWITCHED_OFF or (one.result == "undetermined" and one.resource is None)
        }
        asked = {one.rule.id for one in outcomes} - silent
        return tuple(
            one
            for one in self.findings
            if one.result == "fail" and one.key not in still and one.rule in asked
        )


def read(path: Path, resources: Iterable[Resource]) -> Baseline:
    """The findings in a report. Raises UserError for a file that is none, or is of another stack."""
    file = str(path)
    complaints = Complaints(file)
    findings: list[Known] = []
    urns: set[str] = set()
    with opened(path, _FIX) as stream:
        named, rows = _rows(stream, file, complaints)
        for where, row in rows:
            told = {key: complaints.wants(row, key, str, where, _FIX) for key in _TEXTS}
            if told["result"] not in get_args(Result) or not told["rule"]:
                complaints.add(where, row.get("result"), "must have a rule and its result", _FIX)
            urns.add(told["urn"])
            if told["result"] in OPEN:
                findings.append(Known(**told))
    complaints.end()
    stacks, ours = named or stacks_of(urns), stacks_of(one.urn for one in resources)
    if stacks != ours:
        said = f"is about {_named(stacks)}, and this audit about {_named(ours)}"
        raise refuse(file, said, "Take the report of a former audit of the same stack.")
    return Baseline(tuple(findings))


_Rows = Iterator[tuple[str, dict[str, Any]]]


def _rows(stream: BinaryIO, file: str, complaints: Complaints) -> tuple[frozenset[str], _Rows]:
    """The stacks that a report names, and (place, row) of each of its outcomes.

    Results of a bundle are read line by line: they have a row for each resource and rule, and no end.
    """
    begun = first_line(stream)
    if b'"rule"' in begun and b'"schema"' not in begun:
        told = lines(each_line(stream, file, begun), file, _FIX)
        return frozenset(), _objects(((f"line {number}", row) for number, row in told), complaints)
    report = parsed(whole(stream, file, _FIX, begun, _SMALLER), file, _FIX)
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise refuse(file, f"is no report of {SCHEMA}", _FIX)
    stacks = frozenset(map(str, complaints.wants(report, "stacks", list, "", _FIX)))
    outcomes = complaints.wants(report, "outcomes", list, "", _FIX)
    return stacks, _objects(((f"outcomes[{index}]", row) for index, row in enumerate(outcomes)), complaints)


def _objects(rows: Iterable[tuple[str, Any]], complaints: Complaints) -> _Rows:
    for where, row in rows:
        if isinstance(row, dict):
            yield where, row
        else:
            complaints.add(where, row, "must be an object", _FIX)


def _named(stacks: frozenset[str]) -> str:
    return " and ".join(sorted(stacks)) or "none that it names"


def _key(outcome: Outcome) -> tuple[str, str]:
    return outcome.rule.id, outcome.urn


def stacks_of(urns: Iterable[str]) -> frozenset[str]:
    """PROJECT/STACK of every URN of Pulumi among these, and account and region of what was read from one."""
    found = frozenset(filter(None, map(_stack_of, urns)))
    regional = {one.rpartition(" ")[0] for one in found if one.count(" ") == 2}
    return found - regional  # what is in no region, such as a role, is in the snapshot of each


def _stack_of(urn: str) -> str:
    if urn.startswith("live:"):
        return " ".join(("account", *urn.split(":", 3)[1:3])).strip()
    stack, _, rest = urn.partition("::")
    project, _, _ = rest.partition("::")
    return f"{project}/{stack.removeprefix('urn:pulumi:')}" if stack.startswith("urn:pulumi:") else ""
