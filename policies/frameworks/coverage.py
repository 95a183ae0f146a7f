"""How many resources keep each rule: what a table of controls shows."""

from collections import Counter
from collections.abc import Iterable, Mapping

from policies.evaluate import Outcome, Result

_WORST: tuple[Result, ...] = ("fail", "undetermined", "waived", "pass", "not-applicable")
_CLOUDS = ("aws", "gcp")


def covered(outcomes: Iterable[Outcome], cloud: str = "") -> Mapping[str, Counter[Result]]:
    """Resources by result, for each rule; one with several outcomes counts by the worst, the stack as one.

    With a cloud, without resources of another one; and without any, where it has none in the stack: pods on
    another cloud say nothing of it.
    """
    given = list(outcomes)
    clouds = {_cloud(one) for one in given}
    others = set() if not cloud else {*_CLOUDS} - {cloud} if cloud in clouds else clouds
    worst: dict[str, dict[str, Result]] = {one.rule.id: {} for one in given}
    for one in given:
        if _cloud(one) not in others:
            urn = one.urn
            so_far = worst[one.rule.id].setdefault(urn, one.result)
            worst[one.rule.id][urn] = min(so_far, one.result, key=_WORST.index)
    return {rule: Counter(found.values()) for rule, found in worst.items()}


def _cloud(outcome: Outcome) -> str:
    return outcome.resource.kind.partition(":")[0] if outcome.resource else ""
