"""References to the other side of a peering, which may be in another region or account."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rehearsal.aws.site import Site
from rehearsal.core.model import Properties, Record


@dataclass(frozen=True)
class _Other:
    """Properties of a request for a peering that say where its other side is."""

    path: str
    region: str
    account: str


# botocore 1.44.5 ec2/2016-11-15 CreateVpcPeeringConnectionRequest (PeerRegion, PeerOwnerId: by default those
# of the request) and CreateTransitGatewayPeeringAttachmentRequest.
_OTHERS: Mapping[str, _Other] = {
    "aws:ec2/vpcPeeringConnection:VpcPeeringConnection": _Other("peerVpcId", "peerRegion", "peerOwnerId"),
    "aws:ec2transitgateway/peeringAttachment:PeeringAttachment": _Other(
        "peerTransitGatewayId", "peerRegion", "peerAccountId"
    ),
}


def is_other_side(site: Site, token: str, inputs: Properties, path: str) -> bool:
    """Return whether a property names the other side of a peering, in another region or account."""
    other = _OTHERS.get(token)
    return other is not None and path == other.path and _scope(site, other, inputs) != site.scope


def other_side(site: Site, token: str, inputs: Properties, value: str) -> tuple[Record | None, bool]:
    """The other side under an id, and whether it can be known: another account is not of this rehearsal."""
    scope = _scope(site, _OTHERS[token], inputs)
    found = next((one for one in site.state.issued(value) if one.scope == scope), None)
    return found, scope.startswith(f"{site.account}/")


def connecting(site: Site, value: str) -> Iterator[Record]:
    """The peering under an id whose other side is here: it has the same id on both sides."""
    for record in site.state.issued(value):
        other = _OTHERS.get(record.type)
        if other is None:
            continue
        account, _, region = record.scope.partition("/")
        given = record.inputs
        if f"{given.get(other.account) or account}/{given.get(other.region) or region}" == site.scope:
            yield record


def _scope(site: Site, other: _Other, inputs: Properties) -> str:
    return f"{inputs.get(other.account) or site.account}/{inputs.get(other.region) or site.region}"
