"""HTML report: summary for a decision, then all findings, rules and controls.

One file without requests to other hosts, enforced by a content security policy; readable without its script.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from infra import pages
from policies.audit import Audit
from policies.catalog import PolicyRule
from policies.evaluate import Result, RuleOutcome
from policies.exit_codes import AuditExitCode, is_counted
from policies.frameworks.framework import Framework, by_rule, frameworks, without_control
from policies.frameworks.tally import covered
from policies.report.texts import differences, expired, found, of, place, printable, resolved, total, waived
from policies.resource import Resource, UndeterminedError
from policies.severity import SEVERITIES

_FOLDER = Path(__file__).parent
_WORST, _NAMES = 5, 2
_NO_OWNER = "no owner"


@dataclass(frozen=True)
class Worst:
    """A violated rule that counts."""

    rule: PolicyRule
    places: Sequence[str]
    more: int
    fixes: Sequence[str]
    owners: Sequence[str]


@dataclass(frozen=True)
class Covered:
    """Result of an audit for a control."""

    control: str
    title: str
    rules: Sequence[str]
    counts: Counter[Result]
    status: str

    @property
    def asked(self) -> bool:
        """Return whether a rule of the control was evaluated."""
        return any(self.counts[one] for one in ("pass", "fail", "waived", "undetermined"))


def document(audit: Audit) -> str:
    """The page; the same audit gives the same text."""
    rules = {one.rule.id: one.rule for one in audit.outcomes}
    known = frameworks(rules)
    counts = covered(audit.outcomes)
    given = [(one, list(controls_of(one, covered(audit.outcomes, one.cloud)))) for one in known]
    values = {
        "verdict": _verdict(audit),
        "good": audit.code is AuditExitCode.CLEAN,
        "facts": _facts(audit, given),
        "total": total(audit),
        "severities": _severities(audit),
        "worst": list(_worst(audit)),
        "waivers": list(_ending(audit)),
        "undetermined": [(one.rule.id, place(one), found(one)) for one in of(audit, "undetermined")],
        "resolved": resolved(audit),
        "compared": audit.resolved is not None,
        "differences": differences(audit),
        "joined": audit.differences is not None,
        "findings": [_finding(one) for one in of(audit, "fail", "waived", "undetermined")],
        "frameworks": given,
        "rules": [(rule, counts[key]) for key, rule in sorted(rules.items())],
        "controls": by_rule(known),
        "without": without_control(),
    }
    script = (_FOLDER / "page.js").read_text(encoding="utf-8")
    return pages.rendered(_FOLDER / "page.html.j2", values, script)


def _verdict(audit: Audit) -> str:
    failed = [one for one in audit.outcomes if one.result == "fail" and is_counted(one, audit.fail_on)]
    doubtful = [
        one for one in audit.outcomes if one.result == "undetermined" and is_counted(one, audit.fail_on)
    ]
    least = "" if audit.fail_on == SEVERITIES[0] else f" of severity {audit.fail_on} or above"
    match audit.code:
        case AuditExitCode.CLEAN:
            return f"Clean: no violations{least}, and nothing{least} is undetermined."
        case AuditExitCode.UNDETERMINED:
            return f"Undetermined: no violations{least}, but {len(doubtful)} undetermined outcomes."
        case AuditExitCode.EXPIRED_WAIVERS:
            return f"Waivers have expired: {len(failed)} violations{least}, each with an expired waiver."
        case _:
            counts = Counter(one.rule.severity for one in failed)
            worst = ", ".join(f"{counts[one]} {one}" for one in reversed(SEVERITIES) if counts[one])
            return f"Violations: {worst}. Each needs a fix or a waiver."


def _facts(audit: Audit, given: Sequence[tuple[Framework, Sequence[Covered]]]) -> Mapping[str, str]:
    made = {"Judged": printable(audit.source)}
    made["Stack"] = printable(", ".join(sorted(audit.stacks))) or "unknown"
    if audit.inputs:
        made["From"] = audit.inputs.kind
        made["At"] = f"{audit.inputs.at:%Y-%m-%d %H:%M} UTC"
    made["Resources"] = f"{audit.resources}"
    made["Rules"] = f"{len({one.rule.id for one in audit.outcomes})}"
    made["Counted"] = f"severity {audit.fail_on} and above"
    made["Waivers expired or expiring"] = f"{len(list(_ending(audit)))}"
    made["Undetermined"] = f"{len(of(audit, 'undetermined'))}"
    controls = [one for _, rows in given for one in rows]
    made["Controls with violations"] = f"{sum(one.counts['fail'] > 0 for one in controls)} of {len(controls)}"
    return made


def _severities(audit: Audit) -> list[tuple[str, list[int]]]:
    """By severity: counted violations, other violations, waived, undetermined, passed."""
    made: list[tuple[str, list[int]]] = []
    for severity in reversed(SEVERITIES):
        rows = [one for one in audit.outcomes if one.rule.severity == severity]
        failed = [one for one in rows if one.result == "fail"]
        new = [one for one in failed if is_counted(one, SEVERITIES[0])]
        tally = Counter(one.result for one in rows)
        made.append(
            (
                severity,
                [len(new), len(failed) - len(new), tally["waived"], tally["undetermined"], tally["pass"]],
            )
        )
    return made


def _worst(audit: Audit) -> Iterator[Worst]:
    failed = [one for one in of(audit, "fail") if is_counted(one, audit.fail_on)]
    groups = [list(rows) for _, rows in groupby(failed, lambda one: one.rule.id)]
    groups.sort(key=lambda rows: (-SEVERITIES.index(rows[0].rule.severity), -len(rows)))
    for rows in groups[:_WORST]:
        places = list(dict.fromkeys(map(place, rows)))
        fixes = list(dict.fromkeys(printable(one.fix) for one in rows))
        owners = dict.fromkeys(map(_owner, rows))
        named = [one for one in owners if one != _NO_OWNER] or [_NO_OWNER]
        yield Worst(rows[0].rule, places[:_NAMES], len(places[_NAMES:]), fixes[:_NAMES], named)


def _owner(outcome: RuleOutcome) -> str:
    """Owner of its waiver, or owner tag of its resource."""
    if outcome.waiver:
        return printable(outcome.waiver.owner)
    return _tagged(outcome.resource) if outcome.resource else _NO_OWNER


def _tagged(resource: Resource) -> str:
    try:
        return printable(str(resource.tags.get("owner") or _NO_OWNER))
    except UndeterminedError:
        return "unknown"


def _ending(audit: Audit) -> Iterator[Sequence[str]]:
    """(rule, ticket, owner, last day, status) of waivers that have expired or expire soon."""
    if audit.inputs is None:
        return
    today = audit.inputs.judge.configuration.settings.today
    for one in sorted(audit.inputs.judge.waivers, key=lambda one: one.expires):
        if not one.holds(today) or one.ends_soon(today):
            days = (one.expires - today).days
            status = "expired" if days < 0 else f"expires in {days} days"
            yield (*map(printable, (one.rule, one.ticket, one.owner)), f"{one.expires}", status)


def _finding(outcome: RuleOutcome) -> Mapping[str, Any]:
    return {
        "severity": outcome.rule.severity,
        "result": "known" if outcome.known and outcome.result == "fail" else outcome.result,
        "rule": outcome.rule,
        "place": place(outcome),
        "urn": printable(outcome.resource.urn) if outcome.resource else "",
        "found": found(outcome),
        "fix": printable(outcome.fix),
        "waiver": waived(outcome) if outcome.result == "waived" else expired(outcome),
        "owner": _owner(outcome),
    }


def controls_of(framework: Framework, counts: Mapping[str, Counter[Result]]) -> Iterator[Covered]:
    """The controls of a framework that rules are evidence for, with the results of `counts` by rule."""
    for control, rows in groupby(framework.references, lambda one: one.control):
        references = [one for one in rows if one.rule in counts]
        results: Counter[Result] = Counter()
        for one in {one.rule for one in references}:
            results += counts[one]
        statuses = {one.status for one in references}
        status = statuses.pop() if len(statuses) == 1 else "partly verified, partly to be confirmed"
        names = list(dict.fromkeys(one.rule for one in references))
        if references:
            yield Covered(control, framework.controls[control], names, results, status)
