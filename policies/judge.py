"""Judges resources as a configuration and waivers say; both are read once, and refused whole."""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from infra.errors import Problem, UserError
from policies.catalog import PolicyRule, in_order
from policies.configuration import Configuration, read
from policies.coverage import WHOLE, Coverage
from policies.evaluate import Result, RuleOutcome, evaluate
from policies.resource import Resource
from policies.rules import CATALOG
from policies.settings import RuleSettings
from policies.stack import Stack
from policies.waivers.waiver import Waiver, stack_of


@dataclass(frozen=True)
class Judge:
    """The rules, how they bind, and what is waived."""

    configuration: Configuration = field(default_factory=Configuration)
    waivers: Sequence[Waiver] = ()

    @staticmethod
    def read(
        config: Path | None, waivers: Path | None, today: datetime.date, environment: str | None = None
    ) -> "Judge":
        """As two files say, for one of the environments of the first, where it has some.

        Raises UserError with all faults of the first file that has any.
        """
        rules = CATALOG.rules
        binding = Configuration(RuleSettings(today=today))
        if config is not None:
            binding = read(config, rules, today, environment)
        elif environment:
            rule, fix = (
                "is part of a configuration",
                "Name its file (--config), or leave the environment out.",
            )
            raise UserError([Problem("environment", environment, rule, fix, code="configuration-missing")])
        if waivers is None:
            return Judge(binding)
        from policies.waivers import waiver_file  # noqa: PLC0415 - slow to import

        return Judge(binding, waiver_file.read(waivers, rules, binding.settings.today))

    @cached_property
    def rules(self) -> Sequence[PolicyRule]:
        """All of them, in order."""
        return in_order(CATALOG.rules)

    def outcomes(
        self,
        resources: Iterable[Resource],
        rules: Iterable[PolicyRule] | None = None,
        coverage: Coverage = WHOLE,
    ) -> list[RuleOutcome]:
        """Outcomes of the rules before waivers; of all rules, or of `rules`."""
        asked = self.rules if rules is None else rules
        return evaluate(
            Stack(resources, self.configuration.settings, coverage), asked, self.configuration.enforced
        )

    def judged(
        self, resources: Iterable[Resource], coverage: Coverage = WHOLE
    ) -> tuple[list[RuleOutcome], tuple[str, ...]]:
        """(outcomes after waivers, advice about the waivers)."""
        outcomes = self.outcomes(resources, coverage=coverage)
        if not self.waivers:
            return outcomes, ()
        return apply_waivers(outcomes, self.waivers, self.configuration.settings.today)


def apply_waivers(
    outcomes: Sequence[RuleOutcome], waivers: Sequence[Waiver], today: datetime.date
) -> tuple[list[RuleOutcome], tuple[str, ...]]:
    """(outcomes with waivers, advice): a violation becomes `waived`, or keeps the waiver that has expired.

    The advice lists waivers that expire soon and waivers without a violation.
    """
    stacks = frozenset(stack_of(one.resource) for one in outcomes if one.resource)
    used: set[int] = set()
    made = []
    for outcome in outcomes:
        fitting = [
            (index, waiver)
            for index, waiver in enumerate(waivers)
            if outcome.result in ("fail", "undetermined")
            and waiver.rule == outcome.rule.id
            and waiver.resource.fits(outcome.resource, stacks)
        ]
        used.update(index for index, _ in fitting)
        if outcome.result == "fail" and fitting:
            _, last = max(fitting, key=lambda pair: pair[1].expires)
            result: Result = "waived" if last.holds(today) else "fail"
            made.append(replace(outcome, waiver=last, result=result))
        else:
            made.append(outcome)
    return made, tuple(_advice(waivers, used, stacks, today))


def _advice(
    waivers: Sequence[Waiver], used: set[int], stacks: frozenset[str], today: datetime.date
) -> Iterator[str]:
    for index, waiver in enumerate(waivers):
        name = f"waivers[{index}] ({waiver.rule}, {waiver.ticket})"
        other_stack = bool(waiver.resource.stack) and waiver.resource.stack not in stacks
        if index not in used and not other_stack:
            yield f"{name} waives nothing here: delete it if no other stack needs it"
        elif waiver.ends_soon(today):
            yield f"{name} ends on {waiver.expires}: {waiver.owner} must fix the violation or renew it"
