"""Apply waivers to outcomes: violations become waived unless their waiver has expired."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import replace

from policies.evaluate import Result, RuleOutcome
from policies.waivers.waiver import Waiver, stack_of


def apply(
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
