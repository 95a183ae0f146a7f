"""The provider's functions: what a program may ask the emulated AWS without creating anything."""

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping

from rehearsal.aws import facts, lookups, policy_document
from rehearsal.aws.naming import draw
from rehearsal.aws.place import Place
from rehearsal.aws.services.eks import addon_version
from rehearsal.aws.table import rows
from rehearsal.core.model import Properties, RefusalError
from rehearsal.core.rules.tables import read_by
from rehearsal.core.rules.telling import unknown_function
from rehearsal.core.state import Record, State
from rehearsal.dataplane.secret_store import CURRENT, SecretStore

_Function = Callable[[Place, Properties], Properties]


def call(state: State, token: str, args: Properties, *, account: str, region: str) -> Properties:
    """The result of a function. Raises RefusalError when it is not emulated or its subject is missing."""
    service, name = token.removeprefix("aws:").partition("/")[0], token.rpartition(":")[2]
    function = _FUNCTIONS.get(f"{service}/{name}") or _reads(token)
    if function is None:
        raise unknown_function(token, f"{service}/{name}", _FUNCTIONS, "rehearsal/aws/functions.py")
    # The SDK sends what it is given and checks what comes back.
    truths = {"true": True, "false": False}
    given = {
        key: truths.get(value, value) if isinstance(value, str) else value for key, value in args.items()
    }
    return function(Place(state, account, region), given)


def _reads(function: str) -> _Function | None:
    """`getVpc` and the like: the outputs of an emulated resource, looked up by its id, ARN or name."""
    found = read_by(function, rows())
    if found is None:
        return None
    token = found.removeprefix("aws:")

    def read(place: Place, args: Properties) -> Properties:
        keys = [
            value for key, value in args.items() if key not in ("region", "tags") and isinstance(value, str)
        ]
        record = place.known_as(token, keys[0] if keys else None)
        return {**args, **record.outputs, "id": record.id}

    return read


def _zones(place: Place, args: Properties) -> Properties:
    names = list(facts.zones(place.region))
    excluded = args.get("excludeNames") or []
    names = [name for name in names if name not in excluded]
    return {
        **args,
        "id": place.region,
        "names": names,
        "zoneIds": [facts.zone_id(place.region, name) for name in names],
        "groupNames": [place.region],
    }


def _identity(place: Place, args: Properties) -> Properties:
    return {
        "id": place.account,
        "accountId": place.account,
        "arn": f"arn:aws:sts::{place.account}:assumed-role/rehearsal/session",
        "userId": f"AROA{draw(place.account, 17).upper()}:session",
    }


def _partition(place: Place, args: Properties) -> Properties:
    return {
        "id": "aws",
        "partition": "aws",
        "dnsSuffix": "amazonaws.com",
        "reverseDnsPrefix": "com.amazonaws",
    }


def _region(place: Place, args: Properties) -> Properties:
    name = args.get("name") or place.region
    return {
        "id": name,
        "name": name,
        "region": name,
        "description": name,
        "endpoint": f"ec2.{name}.amazonaws.com",
    }


def _policy_document(place: Place, args: Properties) -> Properties:
    return policy_document.render(args)


# Public parameters of AWS itself, whose values are image ids or versions.
_PUBLIC_PARAMETERS = re.compile(r"/aws/service/(eks|ecs|ami-\w+|bottlerocket|deeplearning)/\S+")


def _parameter(place: Place, args: Properties) -> Properties:
    name = str(args.get("name"))
    if _PUBLIC_PARAMETERS.fullmatch(name):
        version = name.endswith(("release_version", "image_version"))
        value = "1.0.0-00000000" if version else f"ami-{draw(f'{place.region}{name}', 17)}"
        found: Properties = {"type": "String", "value": value, "version": 1, "insecureValue": value}
        arn = f"arn:aws:ssm:{place.region}::parameter{name}"
    else:
        record = _one_of(
            place.records("ssm/parameter:Parameter"), name, "ParameterNotFound", f"parameter {name}"
        )
        found, arn = record.outputs, record.outputs.get("arn", "")
    return {**args, **found, "id": name, "name": name, "arn": arn}


def _one_of(records: Iterable[Record], name: str, code: str, what: str) -> Record:
    for record in records:
        if name in (record.id, record.name):
            return record
    raise RefusalError(code, f"{what} does not exist.", "Create it in the program first.")


def _cluster(place: Place, args: Properties) -> Properties:
    record = place.known_as("eks/cluster:Cluster", args.get("name"))
    outputs = record.outputs
    return {
        **args,
        **outputs,
        "id": record.id,
        "certificateAuthorities": [outputs["certificateAuthority"]],
    }


def _cluster_auth(place: Place, args: Properties) -> Properties:
    record = place.known_as("eks/cluster:Cluster", args.get("name"))
    url = f"https://sts.{place.region}.amazonaws.com/?Action=GetCallerIdentity&cluster={record.id}"
    token = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
    return {**args, "id": record.id, "token": f"k8s-aws-v1.{token}"}


def _addon_version(place: Place, args: Properties) -> Properties:
    name, version = str(args.get("addonName")), str(args.get("kubernetesVersion"))
    return {**args, "id": name, "version": addon_version(name, version)}


def _ami(place: Place, args: Properties) -> Properties:
    """Some image: which one is newest cannot be known offline."""
    # The fields of a message come in any order.
    seed = f"{place.region}{json.dumps(args, sort_keys=True, default=str)}"
    identifier = f"ami-{draw(seed, 17)}"
    return {
        **args,
        "id": identifier,
        "imageId": identifier,
        "arn": f"arn:aws:ec2:{place.region}::image/{identifier}",
        "architecture": "x86_64",
        "rootDeviceName": "/dev/xvda",
        "rootDeviceType": "ebs",
        "state": "available",
    }


def _instance_type(place: Place, args: Properties) -> Properties:
    """What the catalogue knows of a machine type."""
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


def _offerings(place: Place, args: Properties) -> Properties:
    """Which machine types the region or its zones offer, of those the catalogue holds."""
    region = facts.catalog().regions.get(place.region)
    wanted: list[str] = []
    for one in args.get("filters") or []:
        if one.get("name") == "instance-type":
            wanted += one.get("values") or []
    by_zone = args.get("locationType") in ("availability-zone", "availability-zone-id")
    types, places = [], []
    for name, zone_ids in (region.instance_types if region else {}).items():
        if wanted and name not in wanted:
            continue
        for spot in zone_ids if by_zone else (place.region,):
            types.append(name)
            places.append(spot)
    return {
        **args,
        "id": place.region,
        "instanceTypes": types,
        "locations": places,
        "locationTypes": [args.get("locationType", "region")] * len(types),
    }


def _secret_value(place: Place, args: Properties) -> Properties:
    record = place.known_as("secretsmanager/secret:Secret", args.get("secretId"))
    arn = str(record.outputs.get("arn"))
    versions = [one for one in SecretStore(place.state).versions(arn) if CURRENT in one.stages]
    if not versions:
        raise RefusalError(
            "ResourceNotFoundException",
            f"Secrets Manager can't find the specified secret value for staging label: {CURRENT}",
            f"{record.id} has no value yet.",
        )
    found = {"secretString": versions[-1].value, "versionId": versions[-1].id}
    return {**args, **found, "id": f"{arn}|{CURRENT}", "arn": arn}


_FUNCTIONS: Mapping[str, _Function] = {
    **lookups.FUNCTIONS,
    "index/getAvailabilityZones": _zones,
    "index/getCallerIdentity": _identity,
    "index/getPartition": _partition,
    "index/getRegion": _region,
    "iam/getPolicyDocument": _policy_document,
    "ssm/getParameter": _parameter,
    "eks/getCluster": _cluster,
    "eks/getClusterAuth": _cluster_auth,
    "eks/getAddonVersion": _addon_version,
    "ec2/getAmi": _ami,
    "ec2/getInstanceType": _instance_type,
    "ec2/getInstanceTypeOfferings": _offerings,
    "secretsmanager/getSecretVersion": _secret_value,
}
