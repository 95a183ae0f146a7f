"""Launch templates, and instances that are made from them.

Source: EC2 User Guide (Elastic Fabric Adapter, network cards); the catalog.
"""

from collections.abc import Mapping

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties, Record
from rehearsal.core.properties import at

# Properties of a template outside of the content of its versions. Source: hashicorp/terraform-provider-aws
# internal/service/ec2/ec2_launch_template.go (`updateKeys` in resourceLaunchTemplateUpdate).
_BESIDES = frozenset({"tags", "name", "namePrefix", "defaultVersion", "updateDefaultVersion", "region"})

# Property of an instance -> that of its launch template. Source: hashicorp/terraform-provider-aws
# internal/service/ec2/ec2_instance.go (resourceInstanceRead, readInstance): computed from what EC2 answers.
_FROM_TEMPLATE = {
    "ami": "imageId",
    "instanceType": "instanceType",
    "keyName": "keyName",
    "ebsOptimized": "ebsOptimized",
    "vpcSecurityGroupIds": "vpcSecurityGroupIds",
    "iamInstanceProfile": "iamInstanceProfile.name",
    "monitoring": "monitoring.enabled",
    "tenancy": "placement.tenancy",
    "availabilityZone": "placement.availabilityZone",
    "placementGroup": "placement.groupName",
    "hostId": "placement.hostId",
    "hibernation": "hibernationOptions.configured",
    "disableApiStop": "disableApiStop",
    "disableApiTermination": "disableApiTermination",
    "instanceInitiatedShutdownBehavior": "instanceInitiatedShutdownBehavior",
    "subnetId": "networkInterfaces[0].subnetId",
    "associatePublicIpAddress": "networkInterfaces[0].associatePublicIpAddress",
    "cpuOptions": "cpuOptions",
    "creditSpecification": "creditSpecification",
    "enclaveOptions": "enclaveOptions",
    "maintenanceOptions": "maintenanceOptions",
    "privateDnsNameOptions": "privateDnsNameOptions",
    "capacityReservationSpecification": "capacityReservationSpecification",
}
# Source: botocore 1.44.5 ec2/2016-11-15 InstanceMetadataOptionsRequest (defaults).
_METADATA = {
    "httpEndpoint": "enabled",
    "httpProtocolIpv6": "disabled",
    "httpPutResponseHopLimit": 1,
    "httpTokens": "optional",
    "instanceMetadataTags": "disabled",
}
_TRUTHS = {"true": True, "false": False}


def _instance_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """Values of the launch template, where the program gives none itself."""
    template = _template_of(site, inputs)
    given = {name: at(template, path) for name, path in _FROM_TEMPLATE.items()}
    if not given["vpcSecurityGroupIds"]:
        given["vpcSecurityGroupIds"] = at(template, "networkInterfaces[0].securityGroups")
    found: Properties = {
        name: _TRUTHS.get(value, value) if isinstance(value, str) else value
        for name, value in given.items()
        if value is not None and inputs.get(name) is None
    }
    options = {**(template.get("metadataOptions") or {}), **(inputs.get("metadataOptions") or {})}
    return {**found, "metadataOptions": {**_METADATA, **options}} if options else found


def _template_of(site: Site, inputs: Properties) -> Properties:
    """The content of the version of a launch template that an instance names; empty where it is not kept."""
    named = inputs.get("launchTemplate")
    if not isinstance(named, dict):
        return {}
    template = site.find(named.get("id") or named.get("name"), "ec2/launchTemplate:LaunchTemplate")
    if template is None:
        return {}
    versions = {
        name: str(template.outputs.get(f"{name.lower()}Version", 1)) for name in ("Latest", "Default")
    }
    wanted = str(named.get("version") or "$Default")
    meant = versions.get(wanted.removeprefix("$"), wanted)
    return template.outputs if meant == versions["Latest"] else {}


def _next_version(site: Site, template: Record, inputs: Properties) -> Properties:
    """Every change of the content makes a new version, and the default one if requested."""
    was, now = ({k: v for k, v in x.items() if k not in _BESIDES} for x in (template.inputs, inputs))
    if was == now:
        return {}
    latest = int(template.outputs.get("latestVersion", 1)) + 1
    default = latest if inputs.get("updateDefaultVersion") else template.outputs.get("defaultVersion", 1)
    return {"latestVersion": latest, "defaultVersion": inputs.get("defaultVersion", default)}


HOOKS: Mapping[str, Hooks[Site]] = {
    "ec2/instance:Instance": Hooks(outputs=_instance_outputs),
    "ec2/launchTemplate:LaunchTemplate": Hooks(
        updated=_next_version, volatile=("latestVersion", "defaultVersion")
    ),
}
