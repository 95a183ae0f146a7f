"""A state and the same resources in an emulated account, with the ids of the account."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from policies.resource import Resource, is_unknown, partly
from policies.sources.live.join import Difference
from policies.sources.live.records import LiveAccount, account
from policies.sources.live.tables import tables
from tests.policies.sources.live.remade import answers, buckets, network, services
from tests.policies.sources.live.remade.account import Maker, Remade
from tests.trainstack.collect.cloud import REGION, Account, Answer, emulated
from trainstack.collect.aws.account import collect

MAKERS: Mapping[str, Maker] = {**buckets.MAKERS, **network.MAKERS, **services.MAKERS, **answers.MAKERS}


@dataclass(frozen=True)
class Twins:
    """The same resources, by a state and by an account."""

    state: Sequence[Resource]
    account: LiveAccount


def twins(state: Iterable[Resource]) -> Twins:
    """Make what there is a maker for, and ask the account about it."""
    state = list(state)
    with emulated() as service:
        remade = Remade(service)
        remade.make(state, MAKERS)
        reported = account(collect(REGION, Account({**_silent(state), **answers.said(remade)})))
    assert not reported.coverage.refused
    return Twins([_renamed(one, remade) for one in state], reported)


def lost(one: Difference) -> bool:
    """Whether the emulation forgets it: moto 5.2.5 keeps no description of a rule for a group
    (ec2/models/security_groups.py, SecurityRule) and no version of Lustre (fsx/models.py, FileSystem)."""
    rule = one.resource.kind.startswith("aws:vpc/securityGroup") and one.path == "description"
    return (rule and one.resource.raw("referencedSecurityGroupId")) or one.path == "fileSystemTypeVersion"


def _silent(state: Iterable[Resource]) -> dict[str, Answer]:
    """Nothing of services besides EC2 of which the state has nothing: the emulation is slow to say so."""
    known, kinds = tables("aws"), {one.kind for one in state}
    services = {known.queries[kind.query].service for kind in known.kinds if kind.kind in kinds}
    return {
        f"{one.service}.{one.operation}": lambda _: (200, {})
        for one in known.queries.values()
        if one.service not in {"ec2", *services}
    }


def _renamed(one: Resource, remade: Remade) -> Resource:
    """A resource of the state as if it had been made there."""
    if not one.kind.startswith("aws:"):
        return one
    props, asked = (_values(given, remade) for given in (one.props, one.asked or {}))
    return replace(one, id=remade.renamed(one.id), props=props, asked=asked)


def _values(props: Mapping[str, Any], remade: Remade) -> dict[str, Any]:
    given = dict(props)  # raw values, also unknown ones
    known = {name: value for name, value in given.items() if not is_unknown(value)}
    return partly({**given, **remade.renamed(known)})
