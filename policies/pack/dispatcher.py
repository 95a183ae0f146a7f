"""A few policies for all rules, one for each severity and scope: the engine asks each for every resource.

A rule about one resource alone is judged before the step of the resource, so that an `up` does not make what
the program asks for and the rule forbids. Everything is judged at the end, when all is known.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from policies.catalogue import Rule, Scope
from policies.evaluate import Outcome
from policies.judge import Judge
from policies.report.wording import expired, found, printable, waived
from policies.resource import Resource, is_unknown
from policies.severity import SEVERITIES, Severity
from policies.sources.engine import Row, Told


@dataclass(frozen=True)
class Policy:
    """What the engine knows: a name that a configuration can give another level of enforcement."""

    name: str
    scope: Scope
    severity: Severity
    title: str


def _policies() -> Iterator[Policy]:
    for severity in reversed(SEVERITIES):
        at = "asks for what a rule of this severity forbids"
        yield Policy(f"{severity}-resource", "resource", severity, f"No resource {at}")
    for severity in reversed(SEVERITIES):
        yield Policy(f"{severity}-stack", "stack", severity, f"The stack keeps every rule that is {severity}")


POLICIES: Mapping[tuple[Scope, Severity], Policy] = {(one.scope, one.severity): one for one in _policies()}
AUDIT = Policy("audit", "stack", "low", "Waivers are good, and each is needed")
"""What is said about the audit itself; its configuration names the files of the audit."""


@dataclass(frozen=True)
class Finding:
    """What a policy has to say; told and not counted where it is only advisory."""

    policy: Policy
    message: str
    urn: str = ""
    advisory: bool = False
    repeats: Policy | None = None
    """The policy that has said the same before."""


@dataclass(frozen=True)
class Answer:
    """What the policies of one scope say."""

    findings: Sequence[Finding]
    idle: Sequence[Policy]
    """Those that are about nothing of what was asked: no finding of theirs is no pass."""


_Key = tuple[str, str, str, str]


@dataclass
class Pack:
    """The rules on one stack, while an engine works on it."""

    judge: Judge = field(default_factory=Judge)
    told: Told = field(default_factory=Told)
    _said: set[_Key] = field(default_factory=set)

    def before(self, row: Row) -> Answer:
        """What the program itself asks for and a rule forbids, before the step of a resource.

        What is only absent may still be set by the cloud, and a waiver may name what is not known yet: about
        these the end decides.
        """
        self.told.note(row)
        rules = self._alone.get(row["type"], ())
        resources = self.told.before(row) if rules else []
        outcomes = [outcome for one in resources for outcome in self.judge.outcomes([one], rules)]
        broken = [
            one
            for one in outcomes
            if one.result == "fail" and one.resource and _is_asked(one.resource, one.path)
        ]
        self._said.update(map(_key, broken))
        return _answer("resource", outcomes, broken)

    def after(self, rows: Iterable[Row]) -> Answer:
        """What the rules say of all resources, and the advice about waivers."""
        outcomes, advice = self.judge.judged(self.told.after(rows))
        told = [one for one in outcomes if one.result in ("fail", "waived", "undetermined")]
        advised = [Finding(AUDIT, printable(said), advisory=True) for said in advice]
        return _answer("stack", outcomes, told, self._said, advised)

    @cached_property
    def _alone(self) -> Mapping[str, Sequence[Rule]]:
        """By kind: the rules about one resource alone that no waiver names."""
        waivable = {waiver.rule for waiver in self.judge.waivers}
        rules = [rule for rule in self.judge.rules if rule.alone and rule.id not in waivable]
        kinds = {kind for rule in rules for kind in rule.kinds}
        return {kind: [rule for rule in rules if kind in rule.kinds] for kind in kinds}


def _answer(
    scope: Scope,
    outcomes: Iterable[Outcome],
    told: Iterable[Outcome],
    said: Container[_Key] = (),
    advised: Sequence[Finding] = (),
) -> Answer:
    busy = {one.rule.severity for one in outcomes if one.result != "not-applicable"}
    idle = [policy for (at, severity), policy in POLICIES.items() if at == scope and severity not in busy]
    return Answer([*(_finding(one, scope, _key(one) in said) for one in told), *advised], idle)


def _is_asked(resource: Resource, path: str) -> bool:
    """Whether a program gives a value to the property at a path, or to the part of it that it can give."""
    if not path:
        return False
    value = resource.raw(path.split(".", 1)[0].split("[", 1)[0])
    return value is not None and not is_unknown(value)


def _key(outcome: Outcome) -> _Key:
    urn = outcome.urn
    return outcome.rule.id, urn, outcome.path, outcome.message


def _finding(outcome: Outcome, scope: Scope, is_said: bool) -> Finding:
    severity = outcome.rule.severity
    return Finding(
        POLICIES[scope, severity],
        "\n".join(_lines(outcome)),
        outcome.urn,
        advisory=outcome.advisory or outcome.result != "fail",
        repeats=POLICIES["resource", severity] if is_said else None,
    )


def _lines(outcome: Outcome) -> Iterator[str]:
    mark = {"waived": "waived: ", "undetermined": "could not be judged: "}.get(outcome.result, "")
    yield f"{outcome.rule.id}: {mark}{outcome.rule.title}"
    yield f"found: {found(outcome)}"
    if outcome.result == "waived":
        yield waived(outcome)
    if outcome.result == "fail":
        yield f"fix: {printable(outcome.fix)}"
        yield from filter(None, [expired(outcome)])
