"""Security groups and their rules. Source: EC2 API Reference (AuthorizeSecurityGroupIngress, errors)."""

from collections.abc import Mapping

from rehearsal.aws.rules.network.older_groups import GROUP, RULE, protocol_of
from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties, Record


def protocols_of(inputs: Properties) -> Properties:
    """The rules in the blocks of a group with their protocols as the provider keeps them."""
    return {
        way: [
            {**one, "protocol": protocol_of(one["protocol"])}
            if isinstance(one, dict) and isinstance(one.get("protocol"), str)
            else one
            for one in inputs[way]
        ]
        for way in ("ingress", "egress")
        if isinstance(inputs.get(way), list)
    }


def _group_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    return protocols_of(inputs)


def _group_updated(site: Site, group: Record, inputs: Properties) -> Properties:
    return protocols_of(inputs)


def _rule_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """A rule for all protocols has no ports in EC2, whichever it names."""
    if not isinstance(inputs.get("protocol"), str):
        return {}
    protocol = protocol_of(inputs["protocol"])
    return {"protocol": protocol, **({"fromPort": 0, "toPort": 0} if protocol == "-1" else {})}


HOOKS: Mapping[str, Hooks[Site]] = {
    GROUP: Hooks(outputs=_group_outputs, updated=_group_updated),
    RULE: Hooks(outputs=_rule_outputs),
}
