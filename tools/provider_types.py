"""Resource types of an installed SDK, and their names in the Terraform provider that it is built on."""

import importlib
import re
from collections.abc import Collection, Mapping
from typing import Any

from pulumi.runtime import rpc

from tools.provider_source import spellings

# So much of the properties of two types must be the same; less where their names are.
_LIKENESS, _LEAST_LIKENESS = 0.6, 0.4
# Properties that Pulumi or a later version of a provider has beside a type's own.
_ADDED = frozenset({"region", "tagsAll", "labelsAll"})
# Types whose names differ more; those of no type have the properties of one by chance.
_NAMED = {
    "aws": {
        "apigateway/deployment:Deployment": "aws_api_gateway_deployment",
        "cfg/aggregateAuthorization:AggregateAuthorization": "aws_config_aggregate_authorization",
        "codeartifact/domainPermissions:DomainPermissions": "aws_codeartifact_domain_permissions_policy",
        "codedeploy/application:Application": "aws_codedeploy_app",
        "cognito/identityPoolRoleAttachment:IdentityPoolRoleAttachment": (
            "aws_cognito_identity_pool_roles_attachment"
        ),
        "datasync/locationFsxLustre:LocationFsxLustre": "aws_datasync_location_fsx_lustre_file_system",
        "ec2/networkInterfaceSecurityGroupAttachment:NetworkInterfaceSecurityGroupAttachment": (
            "aws_network_interface_sg_attachment"
        ),
        "elb/loadBalancerCookieStickinessPolicy:LoadBalancerCookieStickinessPolicy": (
            "aws_lb_cookie_stickiness_policy"
        ),
        "lambda/resourcePolicy:ResourcePolicy": "",
        "lb/loadBalancer:LoadBalancer": "aws_lb",
        "lightsail/disk_attachment:Disk_attachment": "aws_lightsail_disk_attachment",
        "opensearchingest/resourcePolicy:ResourcePolicy": "",
        "organizations/tag:Tag": "",
        "s3/bucketReplicationConfig:BucketReplicationConfig": "aws_s3_bucket_replication_configuration",
    }
}


def tokens(package: str) -> list[str]:
    """Every resource type of the SDK, without the package."""
    importlib.import_module(f"pulumi_{package}")
    found = {
        token
        for modules in rpc._RESOURCE_MODULES.values()
        for module in modules
        for token in getattr(module, "mod_info", {}).get("classes", ())
        if token.startswith(f"{package}:")
    }
    return sorted(token.removeprefix(f"{package}:") for token in found)


def matched(package: str, sdk: Mapping[str, Any], theirs: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Token -> the provider's type whose name and properties are nearest; `theirs`: names of inputs."""
    prefix = "aws" if package == "aws" else "google"
    spelt = {name: {one: frozenset(spellings(one)) for one in of} for name, of in theirs.items()}
    named = _NAMED.get(package, {})
    return {
        token: best
        for token, described in sdk.items()
        if (
            best := named.get(token, "")
            if token in named
            else _nearest(token, set(described["inputs"]) - _ADDED, spelt, prefix)
        )
    }


def _nearest(
    token: str, mine: set[str], theirs: Mapping[str, Mapping[str, frozenset[str]]], prefix: str
) -> str | None:
    service, _, kind = token.partition(":")[0].partition("/")
    tail, whole = kind.lower(), re.sub(r"\W", "", service + kind).lower()
    scored = []
    for name, properties in theirs.items():
        plain = name.removeprefix(f"{prefix}_").replace("_", "")
        shared = sum(not each.isdisjoint(mine) for each in properties.values())
        likeness = shared / max(1, len(mine) + len(properties) - shared)
        named = 2.0 if plain == whole else 1.5 if plain == tail else 1.0 if plain.endswith(tail) else 0.0
        if likeness < (_LIKENESS if named < 1.5 else _LEAST_LIKENESS):
            continue
        # Of names that fit as well, the shortest has the least that the token does not say.
        scored.append((named + likeness, likeness, -len(name), name))
    if not scored:
        return None
    score, likeness, _, name = max(scored)
    return name if score >= 1.0 + _LIKENESS or (likeness > 0.95 and len(mine) > 4) else None
