"""The network interfaces a launch template needs so that a node can use every EFA device it has. Pure."""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from infra.catalog.aws.model import InstanceType

# 2 MiB pages that the EFA driver reserves (EKS user guide, node-efa). Libfabric takes its bounce
# buffers from them and pods request them as hugepages-2Mi.
HUGE_PAGES = 5128
HUGE_PAGE_MIB = 2


def network_interfaces(
    instance_type: InstanceType, security_group_ids: Sequence[pulumi.Input[str]]
) -> list[aws.ec2.LaunchTemplateNetworkInterfaceArgs]:
    """The interfaces of `instance_type` in launch order, the primary one first; empty without EFA.

    The layout is a table per type, not a loop: on most types card 0 carries an EFA with an address and every
    other card an address-free one, on some card 0 has no EFA at all. Once a template lists interfaces it may
    not name security groups beside them, so every interface carries `security_group_ids` (EKS user guide,
    launch-templates). No interface requests a public address: EC2 rejects that with more than one interface.
    """
    return [
        aws.ec2.LaunchTemplateNetworkInterfaceArgs(
            network_card_index=interface.network_card_index,
            device_index=interface.device_index,
            interface_type=interface.interface_type,
            security_groups=list(security_group_ids),
            delete_on_termination="true",
            description=f"Card {interface.network_card_index}: {interface.interface_type}",
        )
        for interface in instance_type.efa
    ]
