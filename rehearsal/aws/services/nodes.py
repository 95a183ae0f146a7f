"""EKS managed node groups. Source: Amazon EKS User Guide (managed node groups, launch template support)."""

from collections.abc import Iterator, Mapping

from rehearsal.aws.site import MISSING, Site
from rehearsal.aws.table import TABLE
from rehearsal.core.emulation.functions import Function, absent
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, Record

_INTERFACE = "ec2/networkInterface:NetworkInterface"
_NODE_GROUP = "eks/nodeGroup:NodeGroup"


def _template(site: Site, inputs: Properties) -> Record | None:
    given = inputs.get("launchTemplate")
    if not isinstance(given, dict):
        return None
    return site.find(given.get("id") or given.get("name"), "ec2/launchTemplate:LaunchTemplate")


def _outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    cluster = site.find(inputs.get("clusterName"), "eks/cluster:Cluster")
    given = inputs.get("launchTemplate")
    filled: Properties = {
        "resources": [
            {
                "autoscalingGroups": [
                    {"name": f"eks-{outputs.get('nodeGroupName')}-{draw(f'{seed}/asg', 8)}"}
                ],
                "remoteAccessSecurityGroupId": "",
            }
        ],
        "version": inputs.get("version") or (cluster.outputs["version"] if cluster else None),
        "amiType": inputs.get("amiType") or "AL2023_x86_64_STANDARD",
        "capacityType": inputs.get("capacityType") or "ON_DEMAND",
        "instanceTypes": inputs.get("instanceTypes") or ([] if given else ["t3.medium"]),
        "diskSize": inputs.get("diskSize") or (0 if given else 20),
    }
    template = _template(site, inputs)
    if isinstance(given, dict) and template is not None:
        filled["launchTemplate"] = {"id": template.id, "name": template.outputs.get("name"), **given}
    return filled


def _changed(site: Site, group: Record) -> None:
    site.drop_hidden(group)
    _connect(site, group)


def _connect(site: Site, group: Record) -> None:
    """Create network interfaces of the nodes, which block the deletion of subnets and security groups.

    One per subnet represents those of all nodes. Without groups in a launch template, nodes get that of the
    cluster (EKS User Guide, launch template support).
    """
    groups = _security_groups(site, group.inputs)
    uses = {f"groups[{index}]": found for index, found in enumerate(groups)}
    for index, subnet in enumerate(group.inputs.get("subnetIds") or ()):
        found = site.find(subnet, "ec2/subnet:Subnet")
        if found is None:
            continue
        made = f"eni-{draw(f'{group.key}/{group.id}/{index}', 17)}"
        name = f"network interface of the nodes of {group.name}"
        outputs = {"id": made, "subnetId": found.id, "description": "aws-K8S"}
        site.hidden(group, _INTERFACE, made, outputs, {made}, name=name, uses={**uses, "subnetId": found})


def _security_groups(site: Site, inputs: Properties) -> list[Record]:
    template = _template(site, inputs)
    given = template.inputs if template else {}
    wanted = [*(given.get("vpcSecurityGroupIds") or ())]
    for interface in given.get("networkInterfaces") or ():
        wanted += interface.get("securityGroups") or ()
    if not wanted:
        cluster = site.find(inputs.get("clusterName"), "eks/cluster:Cluster")
        wanted = [cluster.outputs["vpcConfig"]["clusterSecurityGroupId"]] if cluster else []
    found = [site.find(value, "ec2/securityGroup:SecurityGroup") for value in dict.fromkeys(wanted)]
    return [record for record in found if record is not None]


def zones_of(site: Site, group: Record) -> list[str]:
    """The zones of a node group, by its subnets."""
    subnets = [site.find(subnet, "ec2/subnet:Subnet") for subnet in group.inputs.get("subnetIds") or ()]
    return sorted({str(subnet.outputs["availabilityZone"]) for subnet in subnets if subnet is not None})


def _groups(site: Site) -> Iterator[tuple[str, Record]]:
    """The Auto Scaling groups of node groups by name, one each."""
    for record in site.all(_NODE_GROUP):
        yield str(record.outputs["resources"][0]["autoscalingGroups"][0]["name"]), record


def _group_tags(record: Record) -> dict[str, str]:
    """Source: Amazon EKS User Guide, "Simplify node lifecycle with managed node groups"."""
    cluster = str(record.inputs.get("clusterName"))
    group = str(record.outputs.get("nodeGroupName"))
    return {
        "eks:cluster-name": cluster,
        "eks:nodegroup-name": group,
        "k8s.io/cluster-autoscaler/enabled": "true",
        f"k8s.io/cluster-autoscaler/{cluster}": "owned",
    }


def _scaling_groups(site: Site, args: Properties) -> Properties:
    """Filters of DescribeAutoScalingGroups; only tags match."""
    wanted = {one["name"]: one["values"] for one in args.get("filters") or ()}
    found = [
        name
        for name, record in _groups(site)
        if name in (args.get("names") or (name,))
        and all(_group_tags(record).get(key.removeprefix("tag:")) in values for key, values in wanted.items())
    ]
    link = f"arn:aws:autoscaling:{site.region}:{site.account}:autoScalingGroup::autoScalingGroupName/"
    return {**args, "id": site.region, "names": found, "arns": [f"{link}{name}" for name in found]}


def _scaling_group(site: Site, args: Properties) -> Properties:
    for name, record in _groups(site):
        if name == args.get("name"):
            scaling = record.outputs["scalingConfig"]
            sizes = {"minSize": scaling["minSize"], "maxSize": scaling["maxSize"]}
            zones = {"availabilityZones": zones_of(site, record)}
            return {
                **args,
                **sizes,
                **zones,
                "id": name,
                "name": name,
                "desiredCapacity": scaling["desiredSize"],
            }
    raise absent(TABLE, "autoscaling/group:Group", args.get("name"), MISSING)


FUNCTIONS: Mapping[str, Function[Site]] = {
    "autoscaling/getAmiIds": _scaling_groups,
    "autoscaling/getGroup": _scaling_group,
}
HOOKS: Mapping[str, Hooks[Site]] = {_NODE_GROUP: Hooks(outputs=_outputs, created=_connect, changed=_changed)}
