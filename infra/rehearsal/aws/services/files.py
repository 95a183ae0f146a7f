"""FSx for Lustre and EFS. Source: FSx for Lustre and EFS API References; sizes from the catalogue."""

from collections.abc import Iterator

from infra.rehearsal.aws import facts
from infra.rehearsal.aws.naming import draw
from infra.rehearsal.aws.site import Hooks, Site, known, refuse
from infra.rehearsal.model import CheckFailure, Properties

_LUSTRE = "fsx/lustreFileSystem:LustreFileSystem"
_EFS = "efs/fileSystem:FileSystem"
_DEPLOYMENTS = ("SCRATCH_1", "SCRATCH_2", "PERSISTENT_1", "PERSISTENT_2")


def _check_lustre(inputs: Properties) -> Iterator[CheckFailure]:
    kind = inputs.get("deploymentType", "SCRATCH_1")
    if known(kind) and kind not in _DEPLOYMENTS:
        yield CheckFailure("deploymentType", f"must be one of {', '.join(_DEPLOYMENTS)}, not {kind}")
    throughput, size = inputs.get("perUnitStorageThroughput"), inputs.get("storageCapacity")
    if kind in ("SCRATCH_1", "SCRATCH_2"):
        if throughput is not None:
            yield CheckFailure("perUnitStorageThroughput", f"BadRequest: {kind} takes none")
        if inputs.get("efaEnabled"):
            yield CheckFailure("efaEnabled", "BadRequest: EFA needs deployment type PERSISTENT_2")
    if kind != "PERSISTENT_2" or inputs.get("storageType", "SSD") != "SSD":
        return
    if "perUnitStorageThroughput" not in inputs:
        yield CheckFailure("perUnitStorageThroughput", "BadRequest: PERSISTENT_2 on SSD needs it")
    if inputs.get("importPath") or inputs.get("exportPath"):
        yield CheckFailure("importPath", "BadRequest: PERSISTENT_2 takes a DataRepositoryAssociation instead")
    efa = inputs.get("efaEnabled") is True
    if efa and "metadataConfiguration" not in inputs:
        yield CheckFailure("metadataConfiguration", "BadRequest: EFA needs a metadata configuration")
    if isinstance(throughput, int) and isinstance(size, int):
        problem = facts.catalog().lustre.lustre_problem(size, throughput, efa)
        if problem:
            yield CheckFailure("storageCapacity", f"BadRequest: {problem}")


def _lustre_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    subnet = site.find(inputs.get("subnetIds"), "ec2/subnet:Subnet")
    filled: Properties = {
        "networkInterfaceIds": [f"eni-{draw(f'{seed}/eni', 17)}"],
        "vpcId": subnet.outputs["vpcId"] if subnet else None,
    }
    if inputs.get("deploymentType", "").startswith("SCRATCH"):
        filled["mountName"] = "fsx" if inputs["deploymentType"] == "SCRATCH_1" else outputs["mountName"]
    return filled


def _check_association(inputs: Properties) -> Iterator[CheckFailure]:
    path, place = inputs.get("dataRepositoryPath"), inputs.get("fileSystemPath")
    if isinstance(path, str) and not path.startswith("s3://"):
        yield CheckFailure("dataRepositoryPath", f"BadRequest: must be an S3 URI, not {path}")
    if isinstance(place, str) and not place.startswith("/"):
        yield CheckFailure("fileSystemPath", f"BadRequest: must begin with /, not {place}")


def _admit_association(site: Site, inputs: Properties) -> None:
    path = inputs.get("dataRepositoryPath")
    if isinstance(path, str) and not site.preview:
        bucket = path.removeprefix("s3://").partition("/")[0]
        if site.find(bucket, "s3/bucket:Bucket") is None:
            raise refuse("BadRequest", f"The specified bucket does not exist: {bucket}", "dataRepositoryPath")
    system = site.find(inputs.get("fileSystemId"), _LUSTRE)
    if system is not None and system.outputs.get("deploymentType") == "SCRATCH_1":
        raise refuse("BadRequest", "SCRATCH_1 takes no data repository association", "fileSystemId")
    for other in site.others("fsx/dataRepositoryAssociation:DataRepositoryAssociation"):
        if other.outputs.get("fileSystemId") != inputs.get("fileSystemId"):
            continue
        if _overlap(str(other.outputs.get("fileSystemPath")), str(inputs.get("fileSystemPath"))):
            raise refuse(
                "BadRequest", f"file system paths overlap with {other.urn or other.id}", "fileSystemPath"
            )


def _overlap(one: str, other: str) -> bool:
    first, second = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return first.startswith(second) or second.startswith(first)


def _check_efs(inputs: Properties) -> Iterator[CheckFailure]:
    mode, provisioned = inputs.get("throughputMode"), inputs.get("provisionedThroughputInMibps")
    if (mode == "provisioned") != (provisioned is not None) and known(mode):
        yield CheckFailure(
            "provisionedThroughputInMibps", "BadRequest: throughputMode provisioned and this go together"
        )
    if inputs.get("kmsKeyId") is not None and inputs.get("encrypted") is not True:
        yield CheckFailure("encrypted", "BadRequest: a KMS key needs encrypted = true")


def _admit_target(site: Site, inputs: Properties) -> None:
    subnet = site.find(inputs.get("subnetId"), "ec2/subnet:Subnet")
    if subnet is None:
        return
    zone = subnet.outputs.get("availabilityZone")
    for other in site.others("efs/mountTarget:MountTarget"):
        if other.outputs.get("fileSystemId") == inputs.get("fileSystemId") and (
            other.outputs.get("availabilityZoneName") == zone
        ):
            raise refuse(
                "MountTargetConflict",
                "mount target already exists in this AZ",
                "subnetId",
                f"{other.urn or other.id} is in {zone}; a file system has one per zone.",
            )


def _target_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    subnet = site.find(inputs.get("subnetId"), "ec2/subnet:Subnet")
    zone = subnet.outputs["availabilityZone"] if subnet else None
    zone_id = subnet.outputs["availabilityZoneId"] if subnet else None
    name = f"{zone}.{inputs.get('fileSystemId')}.efs.{site.region}.amazonaws.com"
    return {"availabilityZoneName": zone, "availabilityZoneId": zone_id, "mountTargetDnsName": name}


HOOKS = {
    _LUSTRE: Hooks(check=_check_lustre, outputs=_lustre_outputs),
    "fsx/dataRepositoryAssociation:DataRepositoryAssociation": Hooks(
        check=_check_association, admit=_admit_association
    ),
    _EFS: Hooks(check=_check_efs),
    "efs/mountTarget:MountTarget": Hooks(admit=_admit_target, outputs=_target_outputs),
}
