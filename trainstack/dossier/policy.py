"""The verdict of the policies: outcomes by severity and framework, findings, waivers (pure)."""

from collections import Counter
from typing import Any

from policies.audit import Audit
from policies.evaluate import RuleOutcome
from policies.exit_codes import AuditExitCode
from policies.frameworks.framework import frameworks
from policies.frameworks.tally import covered
from policies.report.html_page import controls_of
from policies.report.texts import found, of, place, printable
from policies.severity import SEVERITIES
from trainstack.dossier.facts import Missing, StackFacts

_VERDICTS = {
    AuditExitCode.CLEAN: "clean",
    AuditExitCode.VIOLATIONS: "violations",
    AuditExitCode.UNDETERMINED: "undetermined",
    AuditExitCode.EXPIRED_WAIVERS: "expired waivers",
}


def document(facts: StackFacts) -> dict[str, Any]:
    """The verdict, or why there is none."""
    audit = facts.audit
    if isinstance(audit, Missing):
        return {"known": False, "why": audit.why, "verdict": "unknown"}
    rules = {one.rule.id: one.rule for one in audit.outcomes}
    results = Counter(one.result for one in audit.outcomes)
    return {
        "known": True,
        "why": "",
        "verdict": _VERDICTS.get(audit.code, "unknown"),
        "exit_code": int(audit.code),
        "of": facts.source,
        "rules": len(rules),
        "resources": audit.resources,
        "violations": results["fail"],
        "waived": results["waived"],
        "undetermined": results["undetermined"],
        "passed": results["pass"],
        "severities": [_severity(audit, one) for one in reversed(SEVERITIES)],
        "frameworks": [*_frameworks(audit)],
        "findings": [_finding(one) for one in of(audit, "fail", "undetermined")],
        "waivers": [*_waivers(audit, facts)],
    }


def _severity(audit: Audit, severity: str) -> dict[str, Any]:
    tally = Counter(one.result for one in audit.outcomes if one.rule.severity == severity)
    return {
        "severity": severity,
        "violations": tally["fail"],
        "waived": tally["waived"],
        "undetermined": tally["undetermined"],
        "passed": tally["pass"],
    }


def _frameworks(audit: Audit) -> list[dict[str, Any]]:
    rules = {one.rule.id: one.rule for one in audit.outcomes}
    made = []
    for framework in frameworks(rules):
        rows = [*controls_of(framework, covered(audit.outcomes, framework.cloud))]
        failed = [one for one in rows if one.counts["fail"]]
        open_ = [one for one in rows if not one.counts["fail"] and one.counts["undetermined"]]
        waived = [
            one
            for one in rows
            if one.asked and one not in failed and one not in open_ and one.counts["waived"]
        ]
        asked = [one for one in rows if one.asked]
        made.append(
            {
                "framework": framework.name,
                "read": f"{framework.read}",
                "controls": len(rows),
                "violated": len(failed),
                "undetermined": len(open_),
                "waived": len(waived),
                "passed": len(asked) - len(failed) - len(open_) - len(waived),
                "not_applicable": len(rows) - len(asked),
            }
        )
    return made


def _finding(outcome: RuleOutcome) -> dict[str, Any]:
    return {
        "rule": outcome.rule.id,
        "severity": outcome.rule.severity,
        "result": "violation" if outcome.result == "fail" else outcome.result,
        "title": outcome.rule.title,
        "where": place(outcome),
        "message": found(outcome),
        "fix": printable(outcome.fix),
    }


def _waivers(audit: Audit, facts: StackFacts) -> list[dict[str, Any]]:
    if audit.inputs is None:
        return []
    today = facts.at.date()
    rows = sorted(audit.inputs.judge.waivers, key=lambda one: (one.expires, one.rule))
    return [
        {
            "rule": printable(one.rule),
            "owner": printable(one.owner),
            "ticket": printable(one.ticket),
            "reason": printable(one.reason),
            "from": f"{one.created}",
            "until": f"{one.expires}",
            "days_left": (one.expires - today).days,
            "valid": one.holds(today),
        }
        for one in rows
    ]
