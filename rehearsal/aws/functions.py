"""Functions of the emulated AWS provider, which create no resource."""

import base64
import json
import re
from collections.abc import Iterable, Mapping

from rehearsal.aws import facts, lookups, policy_document
from rehearsal.aws.data_sources import network, places, services
from rehearsal.aws.services import nodes
from rehearsal.aws.services.addons import addon_version
from rehearsal.aws.site import Site
from rehearsal.aws.table import TABLE
from rehearsal.core.emulation.functions import Function, answer
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, Record, RefusalError
from rehearsal.dataplane.aws.secret_store import CURRENT, SecretStore


def answer_to(site: Site, args: Properties) -> Properties:
    """The result of the function that the site's call names. Raises RefusalError without one."""
    return answer(TABLE, FUNCTIONS, _read, site, args)


def _read(site: Site, token: str, args: Properties) -> Properties:
    """The outputs of an emulated resource, looked up by its id, ARN or name; tags are those in AWS."""
    keys = [value for key, value in args.items() if key not in ("region", "tags") and isinstance(value, str)]
    record = site.known_as(token, keys[0] if keys else None)
    tags = {"tags": record.outputs["tagsAll"]} if "tagsAll" in record.outputs else {}
    return {**args, **record.outputs, **tags, "id": record.id}


def _zones(site: Site, args: Properties) -> Properties:
    names = list(facts.zones(site.region))
    excluded = args.get("excludeNames") or []
    names = [name for name in names if name not in excluded]
    return {
        **args,
        "id": site.region,
        "names": names,
        "zoneIds": [facts.zone_id(site.region, name) for name in names],
        "groupNames": [site.region],
    }


def _identity(site: Site, args: Properties) -> Properties:
    return {
        "id": site.account,
        "accountId": site.account,
        "arn": f"arn:aws:sts::{site.account}:assumed-role/rehearsal/session",
        "userId": f"AROA{draw(site.account, 17).upper()}:session",
    }


def _partition(site: Site, args: Properties) -> Properties:
    return {
        "id": "aws",
        "partition": "aws",
        "dnsSuffix": "amazonaws.com",
        "reverseDnsPrefix": "com.amazonaws",
    }


def _region(site: Site, args: Properties) -> Properties:
    name = args.get("name") or site.region
    return {
        "id": name,
        "name": name,
        "region": name,
        "description": name,
        "endpoint": f"ec2.{name}.amazonaws.com",
    }


def _policy_document(site: Site, args: Properties) -> Properties:
    return policy_document.render(args)


# Public parameters of AWS itself, whose values are image ids or versions.
_PUBLIC_PARAMETERS = re.compile(r"/aws/service/(eks|ecs|ami-\w+|bottlerocket|deeplearning)/\S+")


def _parameter(site: Site, args: Properties) -> Properties:
    name = str(args.get("name"))
    if _PUBLIC_PARAMETERS.fullmatch(name):
        version = name.endswith(("release_version", "image_version"))
        value = "1.0.0-00000000" if version else f"ami-{draw(f'{site.region}{name}', 17)}"
        found: Properties = {"type": "String", "value": value, "version": 1, "insecureValue": value}
        arn = f"arn:aws:ssm:{site.region}::parameter{name}"
    else:
        record = _one_of(site.all("ssm/parameter:Parameter"), name, "ParameterNotFound", f"parameter {name}")
        found, arn = record.outputs, record.outputs.get("arn", "")
    return {**args, **found, "id": name, "name": name, "arn": arn}


def _one_of(records: Iterable[Record], name: str, code: str, what: str) -> Record:
    for record in records:
        if name in (record.id, record.name):
            return record
    raise RefusalError(code, f"{what} does not exist.", "Create it in the program first.")


def _cluster(site: Site, args: Properties) -> Properties:
    record = site.known_as("eks/cluster:Cluster", args.get("name"))
    outputs = record.outputs
    return {**args, **outputs, "id": record.id, "certificateAuthorities": [outputs["certificateAuthority"]]}


def _cluster_auth(site: Site, args: Properties) -> Properties:
    record = site.known_as("eks/cluster:Cluster", args.get("name"))
    url = f"https://sts.{site.region}.amazonaws.com/?Action=GetCallerIdentity&cluster={record.id}"
    token = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
    return {**args, "id": record.id, "token": f"k8s-aws-v1.{token}"}


def _addon_version(site: Site, args: Properties) -> Properties:
    name, version = str(args.get("addonName")), str(args.get("kubernetesVersion"))
    return {**args, "id": name, "version": addon_version(name, version)}


def _ami(site: Site, args: Properties) -> Properties:
    """Any image: the newest one is unknown offline."""
    # The fields of a message have any order.
    seed = f"{site.region}{json.dumps(args, sort_keys=True, default=str)}"
    identifier = f"ami-{draw(seed, 17)}"
    return {
        **args,
        "id": identifier,
        "imageId": identifier,
        "arn": f"arn:aws:ec2:{site.region}::image/{identifier}",
        "architecture": "x86_64",
        "rootDeviceName": "/dev/xvda",
        "rootDeviceType": "ebs",
        "state": "available",
    }


def _instance_type(site: Site, args: Properties) -> Properties:
    """Facts of the catalog about a machine type."""
    kind = facts.catalog().instance_type(str(args.get("instanceType")))
    accelerator = facts.catalog().accelerators[kind.accelerator]
    return {
        **args,
        "id": kind.name,
        "defaultVcpus": kind.vcpu,
        "memorySize": kind.memory_mib,
        "efaSupported": bool(kind.efa),
        "efaMaximumInterfaces": kind.efa_interfaces,
        "maximumNetworkCards": kind.network_cards,
        "supportedArchitectures": [kind.architecture],
        "gpuses": [
            {
                "count": kind.accelerator_count,
                "manufacturer": accelerator.vendor,
                "memorySize": kind.accelerator_memory_mib,
                "name": accelerator.name,
            }
        ],
        "totalGpuMemory": kind.accelerator_count * kind.accelerator_memory_mib,
    }


def _offerings(site: Site, args: Properties) -> Properties:
    """Machine types of the catalog that the region or its zones offer."""
    region = facts.catalog().regions.get(site.region)
    wanted: list[str] = []
    for one in args.get("filters") or []:
        if one.get("name") == "instance-type":
            wanted += one.get("values") or []
    by_zone = args.get("locationType") in ("availability-zone", "availability-zone-id")
    types, places = [], []
    for name, zone_ids in (region.instance_types if region else {}).items():
        if wanted and name not in wanted:
            continue
        for spot in zone_ids if by_zone else (site.region,):
            types.append(name)
            places.append(spot)
    return {
        **args,
        "id": site.region,
        "instanceTypes": types,
        "locations": places,
        "locationTypes": [args.get("locationType", "region")] * len(types),
    }


def _secret_value(site: Site, args: Properties) -> Properties:
    record = site.known_as("secretsmanager/secret:Secret", args.get("secretId"))
    arn = str(record.outputs.get("arn"))
    versions = [one for one in SecretStore(site.state).versions(arn) if CURRENT in one.stages]
    if not versions:
        raise RefusalError(
            "ResourceNotFoundException",
            f"Secrets Manager can't find the specified secret value for staging label: {CURRENT}",
            f"{record.id} has no value yet.",
        )
    found = {"secretString": versions[-1].value, "versionId": versions[-1].id}
    return {**args, **found, "id": f"{arn}|{CURRENT}", "arn": arn}


def _log_groups(site: Site, args: Properties) -> Properties:
    """Log groups by a prefix of their names."""
    prefix = args.get("logGroupNamePrefix") or ""
    found = {one.id: one.outputs.get("arn") for one in site.all("cloudwatch/logGroup:LogGroup")}
    names = sorted(name for name in found if name.startswith(prefix))
    return {**args, "id": site.region, "logGroupNames": names, "arns": [found[name] for name in names]}


FUNCTIONS: Mapping[str, Function[Site]] = {
    **lookups.FUNCTIONS,
    **nodes.FUNCTIONS,
    **network.FUNCTIONS,
    **places.FUNCTIONS,
    **services.FUNCTIONS,
    "index/getAvailabilityZones": _zones,
    "index/getCallerIdentity": _identity,
    "index/getPartition": _partition,
    "index/getRegion": _region,
    "iam/getPolicyDocument": _policy_document,
    "ssm/getParameter": _parameter,
    "cloudwatch/getLogGroups": _log_groups,
    "eks/getCluster": _cluster,
    "eks/getClusterAuth": _cluster_auth,
    "eks/getAddonVersion": _addon_version,
    "ec2/getAmi": _ami,
    "ec2/getInstanceType": _instance_type,
    "ec2/getInstanceTypeOfferings": _offerings,
    "secretsmanager/getSecretVersion": _secret_value,
}
