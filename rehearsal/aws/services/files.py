"""FSx for Lustre and EFS. Source: FSx for Lustre and EFS API References; sizes from the catalog."""

from collections.abc import Mapping

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties

_LUSTRE = "fsx/lustreFileSystem:LustreFileSystem"


def _lustre_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    subnet = site.find(inputs.get("subnetIds"), "ec2/subnet:Subnet")
    filled: Properties = {
        "networkInterfaceIds": [f"eni-{draw(f'{seed}/eni', 17)}"],
        "vpcId": subnet.outputs["vpcId"] if subnet else None,
    }
    if inputs.get("deploymentType", "").startswith("SCRATCH"):
        filled["mountName"] = "fsx" if inputs["deploymentType"] == "SCRATCH_1" else outputs["mountName"]
    return filled


def _target_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    subnet = site.find(inputs.get("subnetId"), "ec2/subnet:Subnet")
    zone = subnet.outputs["availabilityZone"] if subnet else None
    zone_id = subnet.outputs["availabilityZoneId"] if subnet else None
    name = f"{zone}.{inputs.get('fileSystemId')}.efs.{site.region}.amazonaws.com"
    return {"availabilityZoneName": zone, "availabilityZoneId": zone_id, "mountTargetDnsName": name}


HOOKS: Mapping[str, Hooks[Site]] = {
    _LUSTRE: Hooks(outputs=_lustre_outputs),
    "efs/mountTarget:MountTarget": Hooks(outputs=_target_outputs),
}
