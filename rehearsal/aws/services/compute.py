"""Launch templates. Source: EC2 User Guide (Elastic Fabric Adapter, network cards); the catalog."""

from collections.abc import Mapping

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties, Record


def _next_version(site: Site, template: Record, inputs: Properties) -> Properties:
    """Every change makes a new version; it becomes the default one when asked for."""
    latest = int(template.outputs.get("latestVersion", 1)) + 1
    default = latest if inputs.get("updateDefaultVersion") else template.outputs.get("defaultVersion", 1)
    return {"latestVersion": latest, "defaultVersion": inputs.get("defaultVersion", default)}


HOOKS: Mapping[str, Hooks[Site]] = {
    "ec2/launchTemplate:LaunchTemplate": Hooks(
        updated=_next_version, volatile=("latestVersion", "defaultVersion")
    ),
}
