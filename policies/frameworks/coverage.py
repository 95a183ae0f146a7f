"""How many resources keep each rule: what a table of controls shows."""

from collections import Counter
from collections.abc import Iterable, Mapping

from policies.evaluate import Outcome, Result

_WORST: tuple[Result, ...] = ("fail", "undetermined", "waived", "pass", "not-applicable")


def covered(outcomes: Iterable[Outcome]) -> Mapping[str, Counter[Result]]:
    """Resources by result, for each rule; one with several outcomes counts by the worst, the stack as one."""
    worst: dict[str, dict[str, Result]] = {}
    for one in outcomes:
        urn = one.resource.urn if one.resource else ""
        so_far = worst.setdefault(one.rule.id, {}).setdefault(urn, one.result)
        worst[one.rule.id][urn] = min(so_far, one.result, key=_WORST.index)
    return {rule: Counter(found.values()) for rule, found in worst.items()}
