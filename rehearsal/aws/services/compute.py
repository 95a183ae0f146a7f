"""Launch templates. Source: EC2 User Guide (Elastic Fabric Adapter, network cards); the catalog."""

from collections.abc import Mapping

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties, Record

# Properties of a template outside of the content of its versions. Source: hashicorp/terraform-provider-aws
# internal/service/ec2/ec2_launch_template.go (`updateKeys` in resourceLaunchTemplateUpdate).
_BESIDES = frozenset({"tags", "name", "namePrefix", "defaultVersion", "updateDefaultVersion", "region"})


def _next_version(site: Site, template: Record, inputs: Properties) -> Properties:
    """Every change of the content makes a new version, and the default one if requested."""
    was, now = ({k: v for k, v in x.items() if k not in _BESIDES} for x in (template.inputs, inputs))
    if was == now:
        return {}
    latest = int(template.outputs.get("latestVersion", 1)) + 1
    default = latest if inputs.get("updateDefaultVersion") else template.outputs.get("defaultVersion", 1)
    return {"latestVersion": latest, "defaultVersion": inputs.get("defaultVersion", default)}


HOOKS: Mapping[str, Hooks[Site]] = {
    "ec2/launchTemplate:LaunchTemplate": Hooks(
        updated=_next_version, volatile=("latestVersion", "defaultVersion")
    )
}
