"""Functions that look resources up: by id, name, tags, and by the filters of the EC2 API."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rehearsal.aws import default_vpc, facts, network_parts
from rehearsal.aws.service_keys import PREFIX, service_key
from rehearsal.aws.site import MISSING, SEEDED, Site
from rehearsal.aws.table import TABLE
from rehearsal.core.emulation.functions import Function, absent
from rehearsal.core.model import Properties, Record, RefusalError

# Arguments that control the search and are no criteria.
_MANNERS = frozenset({"filters", "tags", "region", "default", "defaultForAz", "state", "mostRecent"})
# Filter names of the EC2 API that differ from the property.
_PROPERTIES = {
    "cidr": "cidrBlock",
    "group-name": "name",
    "group-id": "id",
    "availability-zone": "availabilityZone",
}


def one_of(token: str) -> Function[Site]:
    """A function that finds exactly one resource of an EC2 type."""

    def read(site: Site, args: Properties) -> Properties:
        found = list(matching(site, token, args))
        if len(found) == 1:
            return {**args, **_shown(site, found[0])}
        wanted = {name: value for name, value in args.items() if value is not None and name != "region"}
        kind = token.rpartition(":")[2]
        if found:
            message = f"multiple EC2 {kind}s matched; use additional constraints: {wanted}"
            raise RefusalError("TooManyResults", message)
        if set(wanted) == {"id"}:
            raise absent(TABLE, token, wanted["id"], MISSING)
        message = f"no matching EC2 {kind} found: {wanted}"
        raise RefusalError("NotFound", message, "Create it in the program, or in an earlier stack.")

    return read


def many_of(token: str) -> Function[Site]:
    """A function that lists the ids of an EC2 type."""

    def read(site: Site, args: Properties) -> Properties:
        found = list(matching(site, token, args))
        arns = [record.outputs.get("arn") for record in found]
        vpcs = [record.outputs.get("vpcId") for record in found]
        return {
            **args,
            "id": site.region,
            "ids": [record.id for record in found],
            "arns": arns,
            "vpcIds": vpcs,
        }

    return read


def matching(site: Site, token: str, args: Properties) -> Iterator[Record]:
    """The resources of an EC2 type that fit all arguments of a lookup, filters and tags among them."""
    default_vpc.ensure(site.state, site.account, site.region)
    for record in site.all(token):
        if all(_fits(site, record, name, value) for name, value in args.items() if value is not None):
            yield record


def _fits(site: Site, record: Record, name: str, value: Any) -> bool:
    outputs = record.outputs
    if name == "tags":
        return bool(value.items() <= (outputs.get("tagsAll") or {}).items())
    if name == "filters":
        return all(_filtered(site, record, one["name"], one["values"]) for one in value)
    if name in ("default", "defaultForAz"):
        return default_vpc.is_default(site.state, record) is value
    if name in _MANNERS:
        return True
    if record.type.endswith(":RouteTable") and name in ("subnetId", "gatewayId"):
        return any(one.get(name) == value for one in network_parts.associations(site, record))
    own = name == "id" or (name in ("routeTableId", "dhcpOptionsId") and record.type != "aws:ec2/vpc:Vpc")
    return bool((record.id if own else outputs.get(name)) == value)


def _filtered(site: Site, record: Record, name: str, values: Iterable[Any]) -> bool:
    """One filter of the EC2 API; values may hold `*` and `?`. Source: its references, `Filter`."""
    actual = [one for one in _values(site, record, name) if one is not None]
    texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in actual]
    return any(fnmatch.fnmatchcase(text, str(value)) for text in texts for value in values)


def _values(site: Site, record: Record, name: str) -> Iterable[Any]:
    """The values of a resource that a filter of the EC2 API compares."""
    tags = record.outputs.get("tagsAll") or {}
    if name.startswith("tag"):
        return tags if name == "tag-key" else [tags.get(name.removeprefix("tag:"))]
    if name in ("isDefault", "is-default", "default-for-az", "defaultForAz"):
        return [default_vpc.is_default(site.state, record)]
    if name == "state":
        return ["available"]
    if "." in name or name == "default":
        return network_parts.values(site, record, name)
    if re.sub(r"-id$", "", name) == record.id.partition("-")[0] or name == network_parts.own_id(record):
        return [record.id]
    camel = re.sub(r"-(\w)", lambda match: match.group(1).upper(), name)
    return [record.outputs.get(_PROPERTIES.get(name, camel), record.id if name == "group-id" else None)]


def _shown(site: Site, record: Record) -> Properties:
    shown = {
        **record.outputs,
        "id": record.id,
        "tags": record.outputs.get("tagsAll") or {},
        "state": "available",
    }
    if record.type == "aws:ec2/vpc:Vpc":
        shown["default"] = default_vpc.is_default(site.state, record)
        shown["cidrBlockAssociations"] = []
    if record.type == "aws:ec2/subnet:Subnet":
        shown["defaultForAz"] = default_vpc.is_default(site.state, record)
    if record.type == network_parts.TABLE:
        shown |= network_parts.of_table(site, record)
    return shown


def _policy(site: Site, args: Properties) -> Properties:
    """A policy of the account, or one that AWS manages (without its document)."""
    wanted = args.get("arn") or args.get("name")
    for record in site.all("iam/policy:Policy"):
        if wanted in (record.outputs.get("arn"), record.outputs.get("name")):
            return {**args, **record.outputs, "id": record.id}
    managed = re.fullmatch(r"arn:aws:iam::aws:policy/(.*/)?([\w+=,.@-]+)", str(args.get("arn")))
    if managed:
        path = f"/{managed.group(1) or ''}"
        return {**args, "id": args["arn"], "name": managed.group(2), "path": path, "policy": "{}"}
    raise absent(TABLE, "iam/policy:Policy", wanted, MISSING)


def _key(site: Site, args: Properties) -> Properties:
    """A key by id, ARN or alias; those of the services always exist."""
    wanted = str(args.get("keyId"))
    alias = wanted.rpartition(":")[2] if ":alias/" in wanted else wanted
    if alias.startswith(PREFIX):
        return {**args, **service_key(site, alias), "keyManager": "AWS"}
    for record in site.all("kms/alias:Alias"):
        if alias == record.outputs.get("name"):
            wanted = str(record.outputs.get("targetKeyId"))
    record = site.known_as("kms/key:Key", wanted)
    return {**args, **record.outputs, "id": record.id, "keyManager": "CUSTOMER"}


def _alias(site: Site, args: Properties) -> Properties:
    name = str(args.get("name"))
    arn = f"arn:aws:kms:{site.region}:{site.account}:{name}"
    if name.startswith(PREFIX):
        key = service_key(site, name)
    else:
        record = site.known_as("kms/alias:Alias", name)
        key = _key(site, {"keyId": str(record.outputs.get("targetKeyId"))})
    return {**args, "id": arn, "arn": arn, "targetKeyArn": key["arn"], "targetKeyId": key["id"]}


def _parameters(site: Site, args: Properties) -> Properties:
    """SSM parameters below a path, one level deep unless recursive."""
    path = str(args.get("path")).rstrip("/") + "/"
    found = []
    for record in site.all("ssm/parameter:Parameter"):
        rest = str(record.outputs.get("name") or record.id).removeprefix(path)
        inside = rest != str(record.outputs.get("name") or record.id)
        if inside and (args.get("recursive") or "/" not in rest):
            found.append(record)
    columns = {"names": "name", "types": "type", "values": "value", "arns": "arn"}
    lists = {name: [one.outputs.get(column) for one in found] for name, column in columns.items()}
    return {**args, "id": args.get("path"), **lists}


def _hosted_zone(site: Site, args: Properties) -> Properties:
    """A zone by name (with or without the final dot) or id."""
    name, identifier = str(args.get("name") or "").rstrip("."), args.get("zoneId")
    for record in site.all("route53/zone:Zone"):
        outputs = record.outputs
        here = str(outputs.get("name") or "").rstrip(".")
        if identifier in (record.id, outputs.get("zoneId")) if identifier else name == here:
            zone = outputs.get("zoneId") or record.id
            return {**args, **outputs, "id": zone, "zoneId": zone, "name": here}
    message = "no matching Route 53 Hosted Zone found"
    raise RefusalError(
        "NoSuchHostedZone", f"{message}: {identifier or name}", f"Create aws.route53.Zone first. {SEEDED}"
    )


def _cluster_versions(site: Site, args: Properties) -> Properties:
    """The Kubernetes versions of the catalog, newest first."""
    only = args.get("clusterVersionsOnlies") or []
    versions = sorted(facts.catalog().eks.versions, key=lambda text: [int(part) for part in text.split(".")])
    rows = [{"clusterVersion": one} for one in reversed(versions) if not only or one in only]
    return {**args, "id": site.region, "clusterVersions": rows}


_ONE = (
    "vpc",
    "subnet",
    "securityGroup",
    "internetGateway",
    "routeTable",
    "natGateway",
    "vpcEndpoint",
    "vpcDhcpOptions",
)
_MANY = {
    "getVpcs": "vpc",
    "getSubnets": "subnet",
    "getSecurityGroups": "securityGroup",
    "getRouteTables": "routeTable",
    "getNetworkAcls": "networkAcl",
}


def _token(kind: str) -> str:
    return f"ec2/{kind}:{kind[0].upper()}{kind[1:]}"


FUNCTIONS: Mapping[str, Function[Site]] = {
    **{f"ec2/get{kind[0].upper()}{kind[1:]}": one_of(_token(kind)) for kind in _ONE},
    **{f"ec2/{name}": many_of(_token(kind)) for name, kind in _MANY.items()},
    "ec2/getRoute": network_parts.route,
    "iam/getPolicy": _policy,
    "kms/getKey": _key,
    "kms/getAlias": _alias,
    "ssm/getParametersByPath": _parameters,
    "route53/getZone": _hosted_zone,
    "eks/getClusterVersions": _cluster_versions,
}
