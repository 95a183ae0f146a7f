"""Judges a stack by rules: one outcome for each pair of a rule and a resource that it is about."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from policies.catalogue import NotApplicableError, Rule, Violation
from policies.configuration import Enforcement
from policies.resource import Resource, UndeterminedError
from policies.stack import Stack

if TYPE_CHECKING:
    from policies.waivers.waiver import Waiver

Result = Literal["pass", "fail", "waived", "not-applicable", "undetermined"]
SWITCHED_OFF = "the configuration switches the rule off"


@dataclass(frozen=True)
class Outcome:
    """What a rule says about one resource, or about the stack (`resource` is None)."""

    rule: Rule
    resource: Resource | None
    result: Result
    message: str = ""
    path: str = ""
    fix: str = ""
    waiver: "Waiver | None" = None
    """By which it is waived; of a violation, the one that has expired."""
    advisory: bool = False
    """Told, and not counted: the rule does not bind here."""
    known: bool = False
    """The baseline has it too; a violation that is known is told, and not counted."""

    @property
    def urn(self) -> str:
        """Of the resource; empty where it is about the stack."""
        return self.resource.urn if self.resource else ""


def evaluate(
    stack: Stack, rules: Iterable[Rule], enforced: Callable[[str], Enforcement] = lambda _: "mandatory"
) -> list[Outcome]:
    """Every outcome, rule by rule. A rule that raises is undetermined and never ends the others."""
    return [outcome for rule in rules for outcome in _enforced(rule, stack, enforced(rule.id))]


def _enforced(rule: Rule, stack: Stack, how: Enforcement) -> Iterator[Outcome]:
    if how == "disabled":
        yield Outcome(rule, None, "not-applicable", SWITCHED_OFF)
    elif how == "advisory":
        yield from (replace(outcome, advisory=True) for outcome in _judged(rule, stack))
    else:
        yield from _judged(rule, stack)


def _judged(rule: Rule, stack: Stack) -> Iterator[Outcome]:
    about = stack.told(*rule.kinds)
    if not (about and rule.whole):
        yield from _unread(rule, stack)
    if not about:
        if not any(map(stack.coverage.gap, rule.kinds)):
            yield Outcome(rule, None, "not-applicable", f"the stack has none of {', '.join(rule.kinds)}")
    elif rule.whole is not None:
        whole = rule.whole
        yield from _asked(rule, None, lambda: whole(stack))
    elif rule.around is not None:
        around = rule.around
        for resource in about:
            yield from _asked(rule, resource, lambda one=resource: around(one, stack))  # type: ignore[misc]
    elif rule.alone is not None:
        alone = rule.alone
        for resource in about:
            yield from _asked(rule, resource, lambda one=resource: alone(one))  # type: ignore[misc]


def _unread(rule: Rule, stack: Stack) -> Iterator[Outcome]:
    """That some of what a rule is about was not read. What a source never tells is another source's."""
    refused = dict.fromkeys(filter(None, map(stack.coverage.refusal, rule.kinds)))
    for why in refused:
        yield Outcome(rule, None, "undetermined", why)
    if not refused and not stack.told(*rule.kinds):
        beyond = next(filter(None, map(stack.coverage.out_of_reach, rule.kinds)), "")
        if beyond:
            yield Outcome(rule, None, "not-applicable", beyond)


def _asked(rule: Rule, about: Resource | None, ask: Callable[[], Iterable[Violation]]) -> list[Outcome]:
    found: list[Outcome] = []
    try:
        for broken in ask():
            fix = broken.fix or rule.remediation
            found.append(Outcome(rule, broken.resource or about, "fail", broken.message, broken.path, fix))
    except NotApplicableError as error:
        return [*found, Outcome(rule, about, "not-applicable", str(error))]
    except UndeterminedError as error:
        return [*found, Outcome(rule, about, "undetermined", str(error))]
    except Exception as error:
        said = f"the rule itself failed with {type(error).__name__}: {error}"
        return [*found, Outcome(rule, about, "undetermined", said)]
    return found or [Outcome(rule, about, "pass")]
