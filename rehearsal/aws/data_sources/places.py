"""Regions, ARNs, accounts of AWS itself, and identities, as lookups show them.

Source: hashicorp/terraform-provider-aws internal/service/meta and the files named in regions.toml; IAM User
Guide, "IAM identifiers" (assumed-role ARNs).
"""

import functools
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rehearsal.aws import facts
from rehearsal.aws.site import Site
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, RefusalError

_SESSION = re.compile(
    r"arn:(?P<partition>[\w-]+):sts::(?P<account>\d+):assumed-role/(?P<role>.+)/(?P<session>[^/]+)"
)
_SERVICE = re.compile(r"[a-z0-9.-]+")


@functools.cache
def _known() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    found: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("regions.toml").read_text("utf-8"))
    return found


def known_in(kind: str, name: str, region: str) -> str | None:
    """The identifier of AWS in a region, or None."""
    return _known()[kind][name].get(region)


def of_region(kind: str, name: str, region: str) -> str:
    """The identifier of AWS in a region. Raises RefusalError for one that `regions.toml` does not list."""
    found = known_in(kind, name, region)
    if found is None:
        message = f"the rehearsal has no {kind.removesuffix('s')} of {name} for the region {region}."
        raise RefusalError(
            "NotEmulated", message, "Add it with its source in rehearsal/aws/data_sources/regions.toml."
        )
    return found


def _zone(site: Site, args: Properties) -> Properties:
    kind = str(args.get("loadBalancerType") or "application")
    return {**args, "id": of_region("zones", kind, site.region), "loadBalancerType": kind}


def _log_account(site: Site, args: Properties) -> Properties:
    found = of_region("accounts", "balancers", site.region)
    return {**args, "id": found, "arn": f"arn:aws:iam::{found}:root"}


def _arn(site: Site, args: Properties) -> Properties:
    parts = str(args.get("arn")).split(":", 5)
    if len(parts) != 6 or parts[0] != "arn":
        raise RefusalError(
            "ValidationError", f"'{args.get('arn')}' is an invalid ARN", "Write arn:aws:SERVICE:..."
        )
    names = ("partition", "service", "region", "account", "resource")
    return {**args, "id": args["arn"], **dict(zip(names, parts[1:], strict=True))}


def _availability_zone(site: Site, args: Properties) -> Properties:
    for name in facts.zones(site.region):
        identifier = facts.zone_id(site.region, name)
        if args.get("name") in (None, name) and args.get("zoneId") in (None, identifier):
            shown = {"zoneId": identifier, "nameSuffix": name.removeprefix(site.region), "state": "available"}
            more = {
                "zoneType": "availability-zone",
                "optInStatus": "opt-in-not-required",
                "groupName": site.region,
            }
            return {**args, **shown, **more, "id": name, "name": name, "networkBorderGroup": site.region}
    message = f"no matching EC2 Availability Zone found: {args.get('name') or args.get('zoneId')}"
    raise RefusalError("NotFound", message, f"Zones are {', '.join(facts.zones(site.region))}.")


def _regions(site: Site, args: Properties) -> Properties:
    """Regions of the catalog: the real list has more."""
    return {**args, "id": "aws", "names": sorted({*facts.catalog().regions, site.region})}


def _principal(site: Site, args: Properties) -> Properties:
    name = str(args.get("serviceName"))
    if not _SERVICE.fullmatch(name):
        raise RefusalError("ValidationError", f"{name!r} is no name of a service", "Write one such as s3.")
    whole = f"{name}.amazonaws.com"
    return {**args, "id": f"{name}.{site.region}.amazonaws.com", "name": whole, "suffix": "amazonaws.com"}


def _default_tags(site: Site, args: Properties) -> Properties:
    given = site.call.instance.config.get("defaultTags")
    tags = dict(given.get("tags") or {}) if isinstance(given, dict) else {}
    return {**args, "id": "aws", "tags": tags}


def _canonical_user(site: Site, args: Properties) -> Properties:
    return {**args, "id": draw(f"canonical/{site.account}", 64), "displayName": ""}


def _session(site: Site, args: Properties) -> Properties:
    """The role behind a session, for policies; other ARNs are their own issuers."""
    arn = str(args.get("arn"))
    found = _SESSION.fullmatch(arn)
    if found is None:
        return {**args, "id": arn, "issuerArn": arn, "issuerId": "", "issuerName": "", "sessionName": ""}
    role = next((one for one in site.all("iam/role:Role") if one.name == found["role"]), None)
    whole = f"arn:{found['partition']}:iam::{found['account']}:role/{found['role']}"
    return {
        **args,
        "id": arn,
        "issuerArn": str(role.outputs.get("arn")) if role else whole,
        "issuerId": str(role.outputs.get("uniqueId")) if role else f"AROA{draw(whole, 17).upper()}",
        "issuerName": found["role"].rpartition("/")[2],
        "sessionName": found["session"],
    }


def _account_alias(site: Site, args: Properties) -> Properties:
    for record in site.all("iam/accountAlias:AccountAlias"):
        alias = record.outputs.get("accountAlias")
        return {**args, "id": alias, "accountAlias": alias}
    message = "no IAM Account Alias found for the account"
    raise RefusalError("NotFound", message, "Create aws.iam.AccountAlias, or leave the lookup out.")


def _organization(site: Site, args: Properties) -> Properties:
    """The organization that a program made; the account is in no other one."""
    for record in site.all("organizations/organization:Organization"):
        return {**args, **record.outputs, "id": record.id}
    message = "Your account is not a member of an organization."
    fix = "Create aws.organizations.Organization, or `trainstack rehearse seed` the real one."
    raise RefusalError("AWSOrganizationsNotInUseException", message, fix)


FUNCTIONS: Mapping[str, Callable[[Site, Properties], Properties]] = {
    "index/getArn": _arn,
    "index/getAvailabilityZone": _availability_zone,
    "index/getRegions": _regions,
    "index/getServicePrincipal": _principal,
    "index/getDefaultTags": _default_tags,
    "lb/getHostedZoneId": _zone,
    "elb/getHostedZoneId": _zone,
    "elb/getServiceAccount": _log_account,
    "s3/getCanonicalUserId": _canonical_user,
    "iam/getSessionContext": _session,
    "iam/getAccountAlias": _account_alias,
    "organizations/getOrganization": _organization,
}
