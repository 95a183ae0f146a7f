"""Security groups and their rules. Source: EC2 API Reference (AuthorizeSecurityGroupIngress, errors)."""

from collections.abc import Mapping

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties


def _default_group_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """Adopt the default group of the VPC."""
    vpc = site.find(inputs.get("vpcId"), "ec2/vpc:Vpc")
    return {"id": vpc.outputs["defaultSecurityGroupId"] if vpc else ""}


HOOKS: Mapping[str, Hooks[Site]] = {
    "ec2/defaultSecurityGroup:DefaultSecurityGroup": Hooks(outputs=_default_group_outputs)
}
