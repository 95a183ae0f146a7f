"""Registries, engines, clusters, passwords and managed policies, as lookups show them.

Source: botocore 1.44.5 (ecr GetAuthorizationToken, secretsmanager GetRandomPassword, rds
DescribeDBEngineVersions); hashicorp/terraform-provider-aws internal/service of each.
"""

import base64
import datetime
import hashlib
import re
import secrets
import string
from collections.abc import Callable, Mapping

from rehearsal.aws import facts, values
from rehearsal.aws.data_sources.places import of_region
from rehearsal.aws.site import Site
from rehearsal.core.emulation.functions import Function
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, RefusalError
from rehearsal.core.rules.open_lists import ListVerdict

_TOKEN_HOURS = 12
_CONTAINERS = re.compile(
    r"(pytorch|tensorflow|mxnet)-(training|inference|inference-eia)"
    r"|huggingface-(pytorch|tensorflow)-(training|inference)"
)
_PUNCTUATION = string.punctuation
# CloudFront Developer Guide, "Use managed cache policies", "Use managed origin request policies",
# "Use managed response headers policies" (2026-11-29).
_MANAGED = {
    "cachePolicy": {
        "Managed-CachingOptimized": "658327ea-f89d-4fab-a63d-7e88639e58f6",
        "Managed-CachingDisabled": "4135ea2d-6df8-44a3-9df3-4b5a84be39ad",
        "Managed-Amplify": "2e54312d-136d-493c-8eb9-b001f22f67d2",
    },
    "originRequestPolicy": {
        "Managed-AllViewerExceptHostHeader": "b689b0a8-53d0-40ab-baf2-68738e2966ac",
        "Managed-AllViewer": "216adef6-5c7f-47e4-b989-5492eafa07d3",
        "Managed-CORS-CustomOrigin": "59781a5b-3903-41f3-afcb-af62929ccde1",
        "Managed-CORS-S3Origin": "88a5eaf4-2fd4-4709-b370-b4c650ea3fcf",
        "Managed-UserAgentRefererHeaders": "acba4595-bd28-49b8-b9fe-13317c0390fa",
    },
    "responseHeadersPolicy": {
        "Managed-SecurityHeadersPolicy": "67f7725c-6f97-4210-82d7-5512b31e9d03",
        "Managed-SimpleCORS": "60669652-455b-4ae9-85a4-c4c02393f86c",
        "Managed-CORS-and-SecurityHeadersPolicy": "e61eb60c-9c35-4d20-a928-2b84e02af89c",
    },
}


def _login(site: Site, args: Properties) -> Properties:
    """A token of the registry, which opens nothing."""
    registry = str(args.get("registryId") or site.account)
    password = draw(f"{registry}/{site.region}", 64)
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=_TOKEN_HOURS)
    return {
        **args,
        "id": site.region,
        "userName": "AWS",
        "password": password,
        "authorizationToken": base64.b64encode(f"AWS:{password}".encode()).decode(),
        "proxyEndpoint": f"https://{registry}.dkr.ecr.{site.region}.amazonaws.com",
        "expiresAt": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _image(site: Site, args: Properties) -> Properties:
    """An image of a repository that exists; its content is unknown, so its digest is made up of its name."""
    name = str(args.get("repositoryName"))
    repository = site.known_as("ecr/repository:Repository", name)
    tag = args.get("imageTag") or ("latest" if args.get("mostRecent") else None)
    digest = args.get("imageDigest")
    if not digest and not tag:
        message = "one of imageDigest, imageTag or mostRecent must be set"
        raise RefusalError("InvalidParameterException", message, "Pass the tag that the pipeline pushes.")
    digest = digest or f"sha256:{hashlib.sha256(f'{name}:{tag}'.encode()).hexdigest()}"
    tags = [tag] if tag else []
    uri = f"{repository.outputs.get('repositoryUrl')}@{digest}"
    return {
        **args,
        "id": digest,
        "imageDigest": digest,
        "imageTags": tags,
        "imageUri": uri,
        "registryId": site.account,
    }


def _names(token: str) -> Function[Site]:
    """A function that lists the names of all resources of a type."""

    def read(site: Site, args: Properties) -> Properties:
        return {**args, "id": site.region, "names": sorted(one.name or one.id for one in site.all(token))}

    return read


def _node_groups(site: Site, args: Properties) -> Properties:
    cluster = site.known_as("eks/cluster:Cluster", args.get("clusterName"))
    found = [one.outputs for one in site.all("eks/nodeGroup:NodeGroup")]
    names = sorted(str(one.get("nodeGroupName")) for one in found if one.get("clusterName") == cluster.name)
    return {**args, "id": cluster.id, "names": names}


def _engine_version(site: Site, args: Properties) -> Properties:
    """The newest known version of an engine that begins with what is asked for."""
    engine = str(args.get("engine"))
    known = values.versions(f"rds {engine}")
    if not known:
        fix = "Name the version in the program."
        raise RefusalError("NotEmulated", f"the rehearsal knows no versions of the engine {engine}.", fix)
    preferred = [str(one) for one in args.get("preferredVersions") or ()]
    wanted = str(args.get("version") or "")
    asked = (
        [one for one in preferred if one in known]
        if preferred
        else [one for one in known if _is(one, wanted)]
    )
    family = str(args.get("parameterGroupFamily") or "").removeprefix(engine)
    found = [one for one in asked if not family or _is(one, family)]
    if not found:
        message = f"no RDS engine versions match the criteria: {engine} {wanted or family or preferred}"
        raise RefusalError("NotFound", message, f"Known are {', '.join(known[-5:])}.")
    chosen = found[0] if preferred else max(found, key=_order)
    major = re.match(r"\d+", chosen)
    whole = engine.startswith("postgres") or engine == "aurora-postgresql"
    more = {"parameterGroupFamily": f"{engine}{major[0]}"} if whole and major else {}
    return {**args, **more, "id": chosen, "version": chosen, "versionActual": chosen, "status": "available"}


def _is(version: str, wanted: str) -> bool:
    return not wanted or version == wanted or version.startswith(f"{wanted}.")


def _order(version: str) -> tuple[bool, list[int]]:
    """Versions of extended support (`-rds.`) come last."""
    return "-rds" not in version, [int(one) for one in re.findall(r"\d+", version)]


def _orderable(site: Site, args: Properties) -> Properties:
    """The first preferred class that the engine has."""
    engine = str(args.get("engine"))
    wanted = [str(one) for one in args.get("preferredInstanceClasses") or (args.get("instanceClass"),) if one]
    if not values.has_machines(f"rds {engine}"):
        fix = "Name the class in the program."
        raise RefusalError("NotEmulated", f"the rehearsal knows no instance classes of {engine}.", fix)
    offered = values.machines(f"rds {engine}")
    chosen = next((one for one in wanted if offered.judge(one) is ListVerdict.KNOWN), None)
    if chosen is None:
        message = "no RDS DB Instance Offerings match the criteria; try a different search"
        raise RefusalError(
            "NotFound", message, f"Not offered for {engine}: {', '.join(wanted) or 'any class'}."
        )
    version = _engine_version(site, {"engine": engine, "version": args.get("engineVersion")})["version"]
    zones = list(facts.zones(site.region))
    shown = {
        "engineVersion": version,
        "availabilityZones": zones,
        "storageType": args.get("storageType") or "gp3",
    }
    return {**args, **shown, "id": chosen, "instanceClass": chosen}


def _password(site: Site, args: Properties) -> Properties:
    """A random password, as the service makes one; `randomPassword` differs with each call."""
    excluded = set(str(args.get("excludeCharacters") or ""))
    kinds = {
        "excludeLowercase": string.ascii_lowercase,
        "excludeUppercase": string.ascii_uppercase,
        "excludeNumbers": string.digits,
        "excludePunctuation": _PUNCTUATION,
    }
    sets = ["".join(sorted(set(text) - excluded)) for name, text in kinds.items() if not args.get(name)]
    sets = [one for one in sets if one] + ([" "] if args.get("includeSpace") else [])
    length = int(args.get("passwordLength") or 32)
    if not sets or length < len(sets):
        raise RefusalError("InvalidParameterException", "no password fits these rules.", "Exclude less.")
    each = [secrets.choice(one) for one in sets] if args.get("requireEachIncludedType") is not False else []
    drawn = [*each, *(secrets.choice("".join(sets)) for _ in range(length - len(each)))]
    secrets.SystemRandom().shuffle(drawn)
    return {**args, "id": site.region, "randomPassword": "".join(drawn)}


def _managed(kind: str, token: str) -> Function[Site]:
    """A policy of CloudFront: one of a program, or a managed one by its name or id."""

    def read(site: Site, args: Properties) -> Properties:
        name, key = args.get("name"), args.get("id")
        for record in site.all(token):
            if key in (None, record.id) and name in (None, record.outputs.get("name")):
                return {**args, **record.outputs, "id": record.id}
        for known, identifier in _MANAGED[kind].items():
            if name == known or key == identifier:
                return {**args, "id": identifier, "name": known, "etag": draw(identifier, 13).upper()}
        fix = "Create it in the program; one of AWS: add it in rehearsal/aws/data_sources/services.py."
        raise RefusalError("NotFound", f"no CloudFront policy matches {name or key}", fix)

    return read


def _training_image(site: Site, args: Properties) -> Properties:
    """An image of SageMaker, of the repositories whose registries are known."""
    name, tag = str(args.get("repositoryName")), str(args.get("imageTag") or "1")
    if _CONTAINERS.fullmatch(name):
        registry = of_region("accounts", "containers", site.region)
    elif name in ("sagemaker-xgboost", "sagemaker-scikit-learn", "sagemaker-sparkml-serving"):
        registry = of_region("accounts", "xgboost", site.region)
    else:
        fix = "Name the image's URI in the program."
        raise RefusalError("NotEmulated", f"the rehearsal does not know the registry of {name}.", fix)
    suffix = args.get("dnsSuffix") or "amazonaws.com"
    path = f"{registry}.dkr.ecr.{site.region}.{suffix}/{name}:{tag}"
    return {**args, "id": registry, "registryId": registry, "registryPath": path, "imageTag": tag}


def _task_definition(site: Site, args: Properties) -> Properties:
    """A task definition by its ARN, family or `family:revision`; the newest of a family."""
    wanted = str(args.get("taskDefinition"))
    for record in reversed(list(site.all("ecs/taskDefinition:TaskDefinition"))):
        family, revision = record.outputs.get("family"), record.outputs.get("revision") or 1
        names = (family, f"{family}:{revision}", record.outputs.get("arn"), record.id)
        if wanted in names:
            return {**args, **record.outputs, "id": record.outputs.get("arn"), "status": "ACTIVE"}
    fix = "Create it in the program; one that exists in the real account: `trainstack rehearse seed`."
    raise RefusalError("ClientException", f"Unable to describe task definition {wanted}.", fix)


def _instance_types(site: Site, args: Properties) -> Properties:
    """Machine types of the catalog in the region, by the filter `instance-type`; others are unknown."""
    offered = facts.catalog().regions.get(site.region)
    names = sorted(offered.instance_types) if offered else []
    for one in args.get("filters") or ():
        if one.get("name") != "instance-type":
            fix = "Known is instance-type."
            raise RefusalError(
                "NotEmulated", f"the rehearsal does not know the filter {one.get('name')}.", fix
            )
        patterns = [re.escape(str(value)).replace(r"\*", ".*") for value in one.get("values") or ()]
        names = [name for name in names if any(re.fullmatch(text, name) for text in patterns)]
    return {**args, "id": site.region, "instanceTypes": names}


FUNCTIONS: Mapping[str, Callable[[Site, Properties], Properties]] = {
    "ecr/getAuthorizationToken": _login,
    "ecr/getCredentials": _login,
    "ecr/getImage": _image,
    "ecr/getRepositories": _names("ecr/repository:Repository"),
    "ecs/getTaskDefinition": _task_definition,
    "eks/getClusters": _names("eks/cluster:Cluster"),
    "eks/getNodeGroups": _node_groups,
    "rds/getEngineVersion": _engine_version,
    "rds/getOrderableDbInstance": _orderable,
    "secretsmanager/getRandomPassword": _password,
    "cloudfront/getCachePolicy": _managed("cachePolicy", "cloudfront/cachePolicy:CachePolicy"),
    "cloudfront/getOriginRequestPolicy": _managed(
        "originRequestPolicy", "cloudfront/originRequestPolicy:OriginRequestPolicy"
    ),
    "cloudfront/getResponseHeadersPolicy": _managed(
        "responseHeadersPolicy", "cloudfront/responseHeadersPolicy:ResponseHeadersPolicy"
    ),
    "sagemaker/getPrebuiltEcrImage": _training_image,
    "ec2/getInstanceTypes": _instance_types,
}
