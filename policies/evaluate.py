"""Judge a stack by rules: at least one outcome for each rule and each resource that it judges."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from policies.catalog import NotApplicableError, PolicyRule, Violation
from policies.configuration import Enforcement
from policies.resource import Resource, UndeterminedError
from policies.stack import Stack
from policies.waivers.waiver import Waiver

Result = Literal["pass", "fail", "waived", "not-applicable", "undetermined"]
SWITCHED_OFF = "the configuration switches the rule off"


@dataclass(frozen=True)
class RuleOutcome:
    """Outcome of a rule for a resource, or for the stack (`resource` is None)."""

    rule: PolicyRule
    resource: Resource | None
    result: Result
    message: str = ""
    path: str = ""
    fix: str = ""
    waiver: Waiver | None = None
    """Waiver that applies; for a violation, the expired one."""
    advisory: bool = False
    """Reported, but not counted: the rule is advisory here."""
    known: bool = False
    """Also in the baseline; a known violation is reported, but not counted."""

    @property
    def urn(self) -> str:
        """URN of the resource; empty for the stack."""
        return self.resource.urn if self.resource else ""


def evaluate(
    stack: Stack, rules: Iterable[PolicyRule], enforced: Callable[[str], Enforcement] = lambda _: "mandatory"
) -> list[RuleOutcome]:
    """All outcomes, rule by rule. A rule that raises is undetermined and does not stop the others."""
    return [outcome for rule in rules for outcome in _enforced(rule, stack, enforced(rule.id))]


def _enforced(rule: PolicyRule, stack: Stack, how: Enforcement) -> Iterator[RuleOutcome]:
    if how == "disabled":
        yield RuleOutcome(rule, None, "not-applicable", SWITCHED_OFF)
    elif how == "advisory":
        yield from (replace(outcome, advisory=True) for outcome in _judged(rule, stack))
    else:
        yield from _judged(rule, stack)


def _judged(rule: PolicyRule, stack: Stack) -> Iterator[RuleOutcome]:
    about = stack.reported(*rule.kinds)
    if not (about and rule.whole):
        yield from _unread(rule, stack)
    if not about:
        if not any(map(stack.coverage.gap, rule.kinds)):
            yield RuleOutcome(rule, None, "not-applicable", f"the stack has none of {', '.join(rule.kinds)}")
    elif rule.whole is not None:
        whole = rule.whole
        yield from _checked(rule, None, lambda: whole(stack))
    elif rule.around is not None:
        around = rule.around
        for resource in about:
            yield from _checked(rule, resource, lambda one=resource: around(one, stack))  # type: ignore[misc]
    elif rule.alone is not None:
        alone = rule.alone
        for resource in about:
            yield from _checked(rule, resource, lambda one=resource: alone(one))  # type: ignore[misc]


def _unread(rule: PolicyRule, stack: Stack) -> Iterator[RuleOutcome]:
    """Outcomes for kinds that were not read: undetermined if refused, not applicable if never reported."""
    refused = dict.fromkeys(filter(None, map(stack.coverage.refusal, rule.kinds)))
    for why in refused:
        yield RuleOutcome(rule, None, "undetermined", why)
    if not refused and not stack.reported(*rule.kinds):
        beyond = next(filter(None, map(stack.coverage.out_of_reach, rule.kinds)), "")
        if beyond:
            yield RuleOutcome(rule, None, "not-applicable", beyond)


def _checked(
    rule: PolicyRule, about: Resource | None, check: Callable[[], Iterable[Violation]]
) -> list[RuleOutcome]:
    found: list[RuleOutcome] = []
    try:
        for one in check():
            resource, fix = one.resource or about, one.fix or rule.remediation
            found.append(RuleOutcome(rule, resource, "fail", one.message, one.path, fix))
    except NotApplicableError as error:
        return [*found, RuleOutcome(rule, about, "not-applicable", str(error))]
    except UndeterminedError as error:
        return [*found, RuleOutcome(rule, about, "undetermined", str(error))]
    except Exception as error:
        message = f"the rule itself failed with {type(error).__name__}: {error}"
        return [*found, RuleOutcome(rule, about, "undetermined", message)]
    return found or [RuleOutcome(rule, about, "pass")]
