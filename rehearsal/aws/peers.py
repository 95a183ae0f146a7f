"""References to the other side of a peering, which may be in another region or account."""

from collections.abc import Mapping
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


def other_scope(site: Site, token: str, inputs: Properties, path: str) -> str:
    """Account and region of the other side of a peering that a property names; empty for all that is here."""
    other = _OTHERS.get(token)
    scope = _scope(other, inputs, site.scope) if other and path == other.path else site.scope
    return "" if scope == site.scope else scope


def connecting(site: Site, value: str) -> Record | None:
    """The peering under an id whose other side is here: it has the same id on both sides."""
    for record in site.state.issued(value):
        other = _OTHERS.get(record.type)
        if other and _scope(other, record.inputs, record.scope) == site.scope:
            return record
    return None


def _scope(other: _Other, inputs: Properties, own: str) -> str:
    account, _, region = own.partition("/")
    return f"{inputs.get(other.account) or account}/{inputs.get(other.region) or region}"
