"""Policies of the engine, one per severity and scope: the engine calls each of them per resource.

Rules that judge a single resource run before its step, so that an `up` does not create what they forbid. All
rules run at the end, when all values are known.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from policies.catalog import PolicyRule, Scope
from policies.evaluate import RuleOutcome
from policies.judge import Judge
from policies.report.texts import expired, found, printable, waived
from policies.resource import Resource, is_unknown
from policies.severity import SEVERITIES, Severity
from policies.sources.engine import EngineResources, Row


@dataclass(frozen=True)
class EnginePolicy:
    """Policy of the engine: a configuration can set its enforcement level by name."""

    name: str
    scope: Scope
    severity: Severity
    title: str


def _policies() -> Iterator[EnginePolicy]:
    for severity in reversed(SEVERITIES):
        title = "No resource violates a rule of this severity"
        yield EnginePolicy(f"{severity}-resource", "resource", severity, title)
    for severity in reversed(SEVERITIES):
        yield EnginePolicy(f"{severity}-stack", "stack", severity, f"The stack passes all {severity} rules")


POLICIES: Mapping[tuple[Scope, Severity], EnginePolicy] = {
    (one.scope, one.severity): one for one in _policies()
}
AUDIT = EnginePolicy("audit", "stack", "low", "Waivers are valid, and each is needed")
"""Advice about waivers; its configuration names the files of the audit."""


@dataclass(frozen=True)
class PackFinding:
    """Finding of a policy; reported, but not counted if it is advisory."""

    policy: EnginePolicy
    message: str
    urn: str = ""
    advisory: bool = False
    repeats: EnginePolicy | None = None
    """The policy that has already reported it."""


@dataclass(frozen=True)
class PackResponse:
    """Findings of the policies of a scope."""

    findings: Sequence[PackFinding]
    idle: Sequence[EnginePolicy]
    """Policies that judged nothing: no finding does not mean a pass."""


_Key = tuple[str, str, str, str]


@dataclass
class PolicyPack:
    """The rules on a stack during an operation of the engine."""

    judge: Judge = field(default_factory=Judge)
    resources: EngineResources = field(default_factory=EngineResources)
    _reported: set[_Key] = field(default_factory=set)

    def before(self, row: Row) -> PackResponse:
        """Violations by inputs of the program, before the step of a resource.

        An absent property may still be set by the cloud, and a waiver may select by values that are not known
        yet: these cases are decided at the end.
        """
        self.resources.note(row)
        rules = self._alone.get(row["type"], ())
        resources = self.resources.before(row) if rules else []
        outcomes = [outcome for one in resources for outcome in self.judge.outcomes([one], rules)]
        broken = [
            one
            for one in outcomes
            if one.result == "fail" and one.resource and _is_input(one.resource, one.path)
        ]
        self._reported.update(map(_key, broken))
        return _response("resource", outcomes, broken)

    def after(self, rows: Iterable[Row]) -> PackResponse:
        """Outcomes of all resources, and the advice about waivers."""
        outcomes, advice = self.judge.judged(self.resources.after(rows))
        shown = [one for one in outcomes if one.result in ("fail", "waived", "undetermined")]
        advised = [PackFinding(AUDIT, printable(text), advisory=True) for text in advice]
        return _response("stack", outcomes, shown, self._reported, advised)

    @cached_property
    def _alone(self) -> Mapping[str, Sequence[PolicyRule]]:
        """By kind: rules that judge a single resource and that no waiver names."""
        waivable = {waiver.rule for waiver in self.judge.waivers}
        rules = [rule for rule in self.judge.rules if rule.alone and rule.id not in waivable]
        kinds = {kind for rule in rules for kind in rule.kinds}
        return {kind: [rule for rule in rules if kind in rule.kinds] for kind in kinds}


def _response(
    scope: Scope,
    outcomes: Iterable[RuleOutcome],
    shown: Iterable[RuleOutcome],
    reported: Container[_Key] = (),
    advised: Sequence[PackFinding] = (),
) -> PackResponse:
    busy = {one.rule.severity for one in outcomes if one.result != "not-applicable"}
    idle = [policy for (at, severity), policy in POLICIES.items() if at == scope and severity not in busy]
    return PackResponse([*(_finding(one, scope, _key(one) in reported) for one in shown), *advised], idle)


def _is_input(resource: Resource, path: str) -> bool:
    if not path:
        return False
    value = resource.raw(path.split(".", 1)[0].split("[", 1)[0])
    return value is not None and not is_unknown(value)


def _key(outcome: RuleOutcome) -> _Key:
    urn = outcome.urn
    return outcome.rule.id, urn, outcome.path, outcome.message


def _finding(outcome: RuleOutcome, scope: Scope, is_repeated: bool) -> PackFinding:
    severity = outcome.rule.severity
    return PackFinding(
        POLICIES[scope, severity],
        "\n".join(_lines(outcome)),
        outcome.urn,
        advisory=outcome.advisory or outcome.result != "fail",
        repeats=POLICIES["resource", severity] if is_repeated else None,
    )


def _lines(outcome: RuleOutcome) -> Iterator[str]:
    mark = {"waived": "waived: ", "undetermined": "undetermined: "}.get(outcome.result, "")
    yield f"{outcome.rule.id}: {mark}{outcome.rule.title}"
    yield f"found: {found(outcome)}"
    if outcome.result == "waived":
        yield waived(outcome)
    if outcome.result == "fail":
        yield f"fix: {printable(outcome.fix)}"
        yield from filter(None, [expired(outcome)])
