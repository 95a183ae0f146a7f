"""Checks of places: region, zones, machine types, versions, and names that earlier deployments left there."""

from collections.abc import Iterator, Mapping

from infra.catalog.aws import facts
from infra.stackspec.layouts import PoolSpec, SmallLayout
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

# A disabled region does not respond to requests about itself; this one is enabled in every account.
_ALWAYS_ENABLED = "us-east-1"
_VERSION, _STANDARD = "kubernetes-version", "STANDARD_SUPPORT"
_ENABLED = ("opt-in-not-required", "opted-in")


def region(account: Account) -> Iterator[Answer]:
    """The account has enabled the region."""
    name = account.spec.region
    asked = account.client("ec2", _ALWAYS_ENABLED).describe_regions(RegionNames=[name], AllRegions=True)
    status = asked["Regions"][0]["OptInStatus"]
    if status in _ENABLED:
        yield Answer("region", State.READY, name)
    else:
        fix = f"aws account enable-region --region-name {name}"
        yield Answer("region", State.SHORT, f"{name} is {status} in this account", fix)


def services(account: Account) -> Iterator[Answer]:
    """The region has every service of the stack, by AWS's own list of today.

    Source: Systems Manager User Guide, "Calling public parameters for AWS services, Regions, endpoints". The
    list has no part for MLflow Apps, which are newer than the rest of SageMaker: they are asked for.
    """
    spec, place = account.spec, account.spec.region
    small = isinstance(account.layout, SmallLayout)
    wanted = ["sagemaker", "efs"] if small else ["eks", "rds"]
    wanted = ["pcs"] if isinstance(account.layout, SlurmLayout) else wanted
    wanted += ["efs"] if spec.data.homes and not small else []
    wanted += ["fsx"] if spec.data.shared_fs else []
    names = {f"/aws/service/global-infrastructure/regions/{place}/services/{one}": one for one in wanted}
    asked = account.client("ssm").get_parameters(Names=list(names))
    missing = [names[name] for name in asked.get("InvalidParameters", ())]
    if small and "sagemaker" not in missing and not _has_mlflow_apps(account):
        missing.append("MLflow Apps of sagemaker")
    for name in missing:
        fix = "Choose another region; `aws ssm get-parameters-by-path --path "
        fix += f"/aws/service/global-infrastructure/services/{name.split()[-1]}/regions` lists those with it."
        yield Answer("services", State.SHORT, f"{place} has no {name}", fix)
    if not missing:
        yield Answer("services", State.READY, ", ".join(wanted))


def _has_mlflow_apps(account: Account) -> bool:
    absent = ("UnknownOperationException", "UnknownOperation")
    return account.found("sagemaker", "list_mlflow_apps", *absent, MaxResults=1) is not None


def zones(account: Account) -> Iterator[Answer]:
    """Every zone exists in the account, is available, and supports EKS clusters."""
    ids = _ids(account)
    usable = [name for name, key in ids.items() if key not in facts.eks.zones_without]
    fix = f"This account has {', '.join(usable)}."
    for name in account.cluster.zones:
        if name not in ids:
            yield Answer("zones", State.SHORT, f"{name} is not available to this account", fix)
        elif name not in usable:
            text = f"{name} is {ids[name]} in this account, which has no EKS clusters"
            yield Answer("zones", State.SHORT, text, fix)
    if set(account.cluster.zones) <= set(usable):
        named = ", ".join(f"{name} ({ids[name]})" for name in account.cluster.zones)
        yield Answer("zones", State.READY, named)


def types(account: Account) -> Iterator[Answer]:
    """Every machine type is offered in every zone of its pools."""
    ids = _ids(account)
    layout = account.machines
    wanted = {
        path: (pool.machine, pool.zones if isinstance(pool, PoolSpec) else layout.zones)
        for path, pool in layout.by_path.items()
    }
    if isinstance(layout, SlurmLayout):
        wanted["layout.login"] = layout.login.machine, layout.zones
    machines = sorted({machine for machine, _ in wanted.values()})
    offered: dict[str, set[str]] = {machine: set() for machine in machines}
    filters = [{"Name": "instance-type", "Values": machines}]
    kind, key = "availability-zone-id", "InstanceTypeOfferings"
    for row in account.pages(
        "ec2", "describe_instance_type_offerings", key, LocationType=kind, Filters=filters
    ):
        offered[row["InstanceType"]].add(row["Location"])
    missing = False
    for path, (machine, names) in wanted.items():
        for name in names:
            if name in ids and ids[name] not in offered[machine]:
                missing = True
                elsewhere = [other for other in ids if ids[other] in offered[machine]]
                fix = f"It is offered in {', '.join(elsewhere) or 'no zone of the region'}."
                yield Answer(
                    "types", State.SHORT, f"{path}: {machine} is not offered in {name} ({ids[name]})", fix
                )
    if not missing:
        yield Answer("types", State.READY, f"{', '.join(machines)}, in all their zones")


def _ids(account: Account) -> Mapping[str, str]:
    """Zone id by zone name of the available zones: names differ between accounts."""
    filters = [{"Name": "zone-type", "Values": ["availability-zone"]}]
    found = account.client("ec2").describe_availability_zones(Filters=filters)["AvailabilityZones"]
    return {zone["ZoneName"]: zone["ZoneId"] for zone in found if zone["State"] == "available"}


def leftovers(account: Account) -> Iterator[Answer]:
    """The log group of the cluster does not exist, or belongs to the stack.

    Late logs of a destroyed cluster create its group again, without a key, and `up` fails with
    ResourceAlreadyExistsException. Source: terraform-aws-modules/terraform-aws-eks issues 920 and 2763.
    """
    name = f"/aws/eks/{account.spec.name}/cluster"
    yield account.foreign_log_group("leftovers", name, "an earlier cluster")


def kubernetes(account: Account) -> Iterator[Answer]:
    """The version is in standard support: the clusters exclude extended support (`upgrade_policy` STANDARD).

    Source: botocore 1.44.5 eks/2017-11-01 DescribeClusterVersions, VersionStatus.
    """
    wanted = account.cluster.kubernetes_version
    found = list(account.pages("eks", "describe_cluster_versions", "clusterVersions", includeAll=True))
    standard = [row["clusterVersion"] for row in found if row.get("versionStatus") == _STANDARD]
    mine = next((row for row in found if row["clusterVersion"] == wanted), None)
    fix = f"Set layout.kubernetes_version to one of {', '.join(standard)}."
    if mine is None:
        yield Answer(_VERSION, State.SHORT, f"EKS has no version {wanted}", fix)
    elif mine.get("versionStatus") != _STANDARD:
        status = str(mine.get("versionStatus", "unknown")).lower().replace("_", " ")
        yield Answer(_VERSION, State.SHORT, f"{wanted} is not in standard support but {status}", fix)
    else:
        until = mine.get("endOfStandardSupportDate")
        text = f"{wanted}, in standard support" + (f" until {until:%Y-%m-%d}" if until else "")
        yield Answer(_VERSION, State.READY, text)
