"""Expected differences between the outcomes of an account and of its state."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from policies.coverage import WHOLE, Coverage
from policies.evaluate import evaluate
from policies.resource import Resource
from policies.rules import CATALOG
from policies.settings import RuleSettings
from policies.sources.live.join import joined
from policies.stack import Stack
from tests.policies.sources.live.remade.twins import Twins

_CLUSTER = "an account does not report objects of a cluster"
_ASKED = "an account does not report inputs of a program"
_OF_PROGRAM = "`protect` and the like, only a program has"
_REGION = "a snapshot covers one region only"
WITH_STATE = {"MLS-GPU-05": _CLUSTER, "MLS-K8S-09": _CLUSTER, "MLS-RES-02": _REGION}
"""Rules that an account leaves open also where its state is known."""
ALONE = {
    **WITH_STATE,
    "MLS-IAM-09": "an account does not report policies of keys, secrets, queues and topics",
    "MLS-K8S-10": _OF_PROGRAM,
    "MLS-K8S-11": _ASKED,
    "MLS-REP-03": _ASKED,
    "MLS-STO-10": _OF_PROGRAM,
    "MLS-TRK-02": _OF_PROGRAM,
}
_OPEN = {"undetermined", "not-applicable"}

Verdicts = Mapping[tuple[str, str], frozenset[str]]
"""By rule and URN, which is empty for the stack."""


@dataclass(frozen=True)
class Compared:
    """What was found, and where an account says otherwise than its state, besides what is expected."""

    said: frozenset[tuple[str, str]]
    """Rules with what they say by the account alone, of what the state has too."""
    alone: list[str]
    joined: list[str]
    """Where the account says otherwise although its state is known."""


def compared(same: Twins, settings: RuleSettings) -> Compared:
    """Outcomes of all rules for resources that both sources report."""
    both = joined(same.state, same.account)
    ids = {(one.kind, one.id): one.urn for one in same.state}
    reported = {one.urn: ids.get((one.kind, one.id), one.urn) for one in same.account.resources}
    here = {"", *({*reported.values()} & {*ids.values()})}
    wanted = _verdicts(same.state, WHOLE, settings, {})
    alone = _verdicts(same.account.resources, same.account.coverage, settings, reported)
    known = _verdicts(both.resources, same.account.coverage, settings, {})
    said = frozenset((rule, one) for (rule, urn), found in alone.items() if urn in here for one in found)
    return Compared(said, _unlike(wanted, alone, here, ALONE), _unlike(wanted, known, here, WITH_STATE))


def _verdicts(
    resources: Iterable[Resource], coverage: Coverage, settings: RuleSettings, urns: Mapping[str, str]
) -> Verdicts:
    found: dict[tuple[str, str], frozenset[str]] = {}
    for one in evaluate(Stack(resources, settings, coverage), CATALOG.rules.values()):
        key = one.rule.id, urns.get(one.urn, one.urn)
        found[key] = found.get(key, frozenset()) | {one.result}
    return found


def _unlike(wanted: Verdicts, found: Verdicts, here: set[str], open: Mapping[str, str]) -> list[str]:
    """Outcomes for resources that both report; an undetermined rule has only that outcome."""
    return [
        f"{rule} {urn}: {sorted(results)} by the state, {sorted(said)} by the account"
        for (rule, urn), results in sorted(wanted.items())
        if urn in here and results != {"not-applicable"}
        for said in [found.get((rule, urn), frozenset())]
        if said != results and not (rule in open and said <= _OPEN)
    ]
