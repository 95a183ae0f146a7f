"""Network interfaces, addresses, instances, key pairs and prefix lists, as lookups show them.

Source: botocore 1.44.5 ec2/2016-11-15 DescribeNetworkInterfaces, DescribeAddresses, DescribeInstances,
DescribeManagedPrefixLists; hashicorp/terraform-provider-aws internal/service/ec2 (*_data_source.go).
"""

import fnmatch
import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rehearsal.aws import facts, lookups
from rehearsal.aws.site import Site
from rehearsal.core.emulation.functions import Function
from rehearsal.core.emulation.templates import digits, draw
from rehearsal.core.model import Properties, Record, RefusalError

_OWN = "ec2/networkInterface:NetworkInterface"
_SEED = "Create it in the program; one that exists in the real account: `trainstack rehearse seed`."
# Filters of the EC2 API -> column of an interface below.
_FILTERS = {
    "network-interface-id": "id",
    "vpc-id": "vpcId",
    "subnet-id": "subnetId",
    "availability-zone": "availabilityZone",
    "description": "description",
    "group-id": "securityGroups",
    "interface-type": "interfaceType",
    "status": "status",
    "private-ip-address": "privateIps",
    "addresses.private-ip-address": "privateIps",
    "attachment.instance-id": "instanceId",
    "owner-id": "ownerId",
}


def _interfaces(site: Site) -> Iterator[Properties]:
    """Interfaces of programs, and those that services make in subnets."""
    for record in site.all(_OWN):
        yield _interface(site, record.id, record.outputs, interfaceType="interface")
    for record in site.all("lb/loadBalancer:LoadBalancer"):
        kind = {"network": "net", "gateway": "gwy"}.get(str(record.outputs.get("loadBalancerType")), "app")
        name = f"ELB {kind}/{record.outputs.get('name')}/{str(record.outputs.get('arn')).rpartition('/')[2]}"
        for subnet in _subnets_of(record):
            made = "network_load_balancer" if kind == "net" else "interface"
            yield _service(site, record, subnet, name, made)
    for record in site.all("ec2/vpcEndpoint:VpcEndpoint"):
        ids = record.outputs.get("networkInterfaceIds") or ()
        name = f"VPC Endpoint Interface {record.id}"
        for key, subnet in zip(ids, record.outputs.get("subnetIds") or (), strict=False):
            yield _service(site, record, str(subnet), name, "vpc_endpoint", key)
    for record in site.all("ec2/natGateway:NatGateway"):
        key, name = record.outputs.get("networkInterfaceId"), f"Interface for NAT Gateway {record.id}"
        yield _service(site, record, str(record.outputs.get("subnetId")), name, "nat_gateway", key)
    for record in site.all("efs/mountTarget:MountTarget"):
        key = record.outputs.get("networkInterfaceId")
        name = f"EFS mount target for {record.outputs.get('fileSystemId')} ({record.id})"
        yield _service(site, record, str(record.outputs.get("subnetId")), name, "efs", key)
    for record in site.all("ec2/instance:Instance"):
        key = record.outputs.get("primaryNetworkInterfaceId")
        if isinstance(key, str) and key.startswith("eni-"):
            found = _service(site, record, str(record.outputs.get("subnetId")), "", "interface", key)
            yield {**found, "instanceId": record.id}


def _subnets_of(record: Record) -> Iterable[str]:
    mapped = [one.get("subnetId") for one in record.outputs.get("subnetMappings") or ()]
    return [str(one) for one in record.outputs.get("subnets") or mapped if one]


def _service(  # noqa: PLR0917 - what differs between services
    site: Site, owner: Record, subnet: str, text: str, kind: str, key: object = None
) -> Properties:
    """An interface that a service made for its resource."""
    found: Properties = {"subnetId": subnet, "description": text}
    found["securityGroups"] = owner.outputs.get("vpcSecurityGroupIds") or owner.outputs.get("securityGroups")
    found["tagsAll"] = {}
    made = key if isinstance(key, str) and key else f"eni-{draw(f'{owner.id}/{subnet}', 17)}"
    return _interface(site, made, found, interfaceType=kind)


def _interface(site: Site, key: str, outputs: Mapping[str, Any], **more: Any) -> Properties:
    subnet = site.find(outputs.get("subnetId"), "ec2/subnet:Subnet")
    place = subnet.outputs if subnet else {}
    given = outputs.get("privateIps") or [one for one in (outputs.get("privateIp"),) if one]
    addresses = list(given) or _address(key, place.get("cidrBlock"))
    return {
        "id": key,
        "arn": f"arn:aws:ec2:{site.region}:{site.account}:network-interface/{key}",
        "vpcId": place.get("vpcId", ""),
        "subnetId": outputs.get("subnetId", ""),
        "availabilityZone": place.get("availabilityZone", ""),
        "description": outputs.get("description") or "",
        "securityGroups": list(outputs.get("securityGroups") or ()),
        "privateIps": addresses,
        "privateIp": addresses[0] if addresses else "",
        "ownerId": site.account,
        "status": "in-use",
        "tags": outputs.get("tagsAll") or {},
        **more,
    }


def _address(key: str, block: object) -> list[str]:
    """An address of a subnet; the first four and the last are those of AWS."""
    if not isinstance(block, str):
        return []
    network = ipaddress.ip_network(block)
    return [str(network[4 + int(digits(key, 9)) % (network.num_addresses - 5)])]


def _matching(site: Site, args: Properties) -> Iterator[Properties]:
    tags = dict(args.get("tags") or {})
    wanted = [(str(one.get("name")), list(one.get("values") or ())) for one in args.get("filters") or ()]
    unknown = [name for name, _ in wanted if name not in _FILTERS and not name.startswith("tag")]
    if unknown:
        known = ", ".join((*_FILTERS, "tag:KEY", "tag-key"))
        message = f"the rehearsal does not know the filter {unknown[0]} of network interfaces."
        raise RefusalError("NotEmulated", message, f"Known are {known}.")
    for row in _interfaces(site):
        if tags.items() <= row["tags"].items() and all(_fits(row, name, values) for name, values in wanted):
            yield row


def _fits(row: Properties, name: str, values: Iterable[object]) -> bool:
    if name.startswith("tag"):
        found = list(row["tags"]) if name == "tag-key" else row["tags"].get(name.removeprefix("tag:"))
    else:
        found = row.get(_FILTERS[name])
    texts = found if isinstance(found, list) else [found]
    return any(fnmatch.fnmatchcase(str(one), str(value)) for one in texts if one for value in values)


def _all_interfaces(site: Site, args: Properties) -> Properties:
    return {**args, "id": site.region, "ids": [row["id"] for row in _matching(site, args)]}


def _one_interface(site: Site, args: Properties) -> Properties:
    found = [row for row in _matching(site, args) if args.get("id") in (None, row["id"])]
    if len(found) != 1:
        several = (
            "multiple EC2 Network Interfaces matched" if found else "no matching EC2 Network Interface found"
        )
        raise RefusalError("NotFound", several, "Name its id." if found else _SEED)
    return {**args, **found[0]}


def _listed(token: str, **columns: str) -> Function[Site]:
    """A function that lists columns of an EC2 type; empty where nothing matches."""

    def read(site: Site, args: Properties) -> Properties:
        found = list(lookups.matching(site, token, args))
        lists = {name: [_column(one, column) for one in found] for name, column in columns.items()}
        return {**args, "id": site.region, **lists}

    return read


def _column(record: Record, name: str) -> object:
    return record.id if name == "id" else record.outputs.get(name)


def _instances(site: Site, args: Properties) -> Properties:
    """Running instances by default, as the provider asks for them."""
    states = args.get("instanceStateNames") or ["running"]
    criteria = {"filters": args.get("filters"), "tags": args.get("instanceTags")}
    found = [
        one
        for one in lookups.matching(site, "ec2/instance:Instance", criteria)
        if str(one.outputs.get("instanceState") or "running") in states
    ]
    columns = {"ids": "id", "privateIps": "privateIp", "publicIps": "publicIp"}
    lists = {name: [_column(one, column) for one in found] for name, column in columns.items()}
    lists["publicIps"] = [one for one in lists["publicIps"] if one]
    return {**args, "id": site.region, **lists, "ipv6Addresses": []}


def _address_of(site: Site, args: Properties) -> Properties:
    """An Elastic IP address by its id, address, tags or filters."""
    criteria = {name: args.get(name) for name in ("publicIp", "tags", "filters")}
    found = [
        one
        for one in lookups.matching(site, "ec2/eip:Eip", criteria)
        if args.get("id") in (None, one.id, one.outputs.get("allocationId"))
    ]
    if len(found) != 1:
        several = "multiple EC2 EIPs matched" if found else "no matching EC2 EIP found"
        raise RefusalError("NotFound", several, "Name its id." if found else _SEED)
    return {**args, **found[0].outputs, "id": found[0].id, "tags": found[0].outputs.get("tagsAll") or {}}


def _key_pair(site: Site, args: Properties) -> Properties:
    wanted = {args.get("keyName"), args.get("keyPairId")} - {None}
    for record in lookups.matching(site, "ec2/keyPair:KeyPair", {name: args.get(name) for name in ("tags",)}):
        names = {record.id, record.outputs.get("keyName"), record.outputs.get("keyPairId")}
        if wanted <= names:
            shown = {**record.outputs, "id": record.outputs.get("keyPairId") or record.id}
            return {
                **args,
                **shown,
                "publicKey": shown.get("publicKey") if args.get("includePublicKey") else "",
            }
    message = f"no matching EC2 Key Pair found: {', '.join(map(str, wanted))}"
    raise RefusalError("InvalidKeyPair.NotFound", message, _SEED)


def _prefix_list(key: str) -> Function[Site]:
    """A prefix list of AWS or of a program, by name or id; blocks of those of AWS are unknown offline."""

    def read(site: Site, args: Properties) -> Properties:
        named = {str(one.get("name")): one.get("values") or [None] for one in args.get("filters") or ()}
        wanted = args.get("name") or named.get("prefix-list-name", [None])[0]
        for record in site.all("ec2/managedPrefixList:ManagedPrefixList"):
            if args.get(key) in (None, record.id) and wanted in (None, record.outputs.get("name")):
                return {**args, **record.outputs, "id": record.id, key: record.id}
        if not isinstance(wanted, str) or not wanted.startswith("com.amazonaws."):
            raise RefusalError(
                "NotFound", f"no matching EC2 Prefix List found: {wanted or args.get(key)}", _SEED
            )
        found = f"pl-{draw(f'{site.region}/{wanted}', 8)}"
        shown = {"arn": f"arn:aws:ec2:{site.region}:aws:prefix-list/{found}", "ownerId": "AWS", "version": 1}
        blocks = {"entries": [], "cidrBlocks": [], "addressFamily": "IPv4", "maxEntries": 0}
        return {**args, **shown, **blocks, "id": found, key: found, "name": wanted}

    return read


def _endpoint_service(site: Site, args: Properties) -> Properties:
    """A service of AWS behind a VPC endpoint."""
    short = args.get("service")
    name = str(args.get("serviceName") or f"com.amazonaws.{site.region}.{short}")
    gateway = name.rpartition(".")[2] in ("s3", "dynamodb")
    kind = args.get("serviceType") or ("Gateway" if gateway else "Interface")
    return {
        **args,
        "id": digits(name, 9),
        "serviceName": name,
        "serviceId": f"vpce-svc-{draw(name, 17)}",
        "serviceType": kind,
        "owner": "amazon",
        "region": site.region,
        "serviceRegion": site.region,
        "acceptanceRequired": False,
        "managesVpcEndpoints": False,
        "vpcEndpointPolicySupported": True,
        "availabilityZones": list(facts.zones(site.region)),
        "baseEndpointDnsNames": [f"{short or name.rpartition('.')[2]}.{site.region}.vpce.amazonaws.com"],
        "privateDnsName": f"{name.rpartition('.')[2]}.{site.region}.amazonaws.com",
    }


FUNCTIONS: Mapping[str, Callable[[Site, Properties], Properties]] = {
    "ec2/getNetworkInterfaces": _all_interfaces,
    "ec2/getNetworkInterface": _one_interface,
    "ec2/getEips": _listed("ec2/eip:Eip", allocationIds="id", publicIps="publicIp"),
    "ec2/getElasticIp": _address_of,
    "ec2/getInstances": _instances,
    "ec2/getNatGateways": _listed("ec2/natGateway:NatGateway", ids="id"),
    "ec2/getVpcPeeringConnections": _listed("ec2/vpcPeeringConnection:VpcPeeringConnection", ids="id"),
    "ec2/getKeyPair": _key_pair,
    "ec2/getManagedPrefixList": _prefix_list("id"),
    "ec2/getPrefixList": _prefix_list("prefixListId"),
    "ec2/getVpcEndpointService": _endpoint_service,
}
