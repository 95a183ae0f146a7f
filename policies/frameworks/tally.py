"""Number of resources by rule and result, for tables of controls."""

from collections import Counter
from collections.abc import Iterable, Mapping

from policies.evaluate import Result, RuleOutcome

_WORST: tuple[Result, ...] = ("fail", "undetermined", "waived", "pass", "not-applicable")
_CLOUDS = ("aws", "gcp")


def covered(outcomes: Iterable[RuleOutcome], cloud: str = "") -> Mapping[str, Counter[Result]]:
    """Resources by result, for each rule; a resource counts once, by its worst outcome, as does the stack.

    With a cloud, resources of other clouds are excluded; if the stack has none of this cloud, all are: pods
    on another cloud are no evidence for it.
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


def _cloud(outcome: RuleOutcome) -> str:
    return outcome.resource.kind.partition(":")[0] if outcome.resource else ""
