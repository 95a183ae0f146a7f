"""SageMaker: the file system, interfaces and groups that a domain makes in its VPC; records of MLflow Apps.

Source: SageMaker API Reference, CreateDomain (an EFS volume, traffic through the VPC and subnets) and
DeleteDomain (RetentionPolicy: retained by default); hashicorp/terraform-provider-aws issue 20986 and
aws-cloudformation/cloudformation-coverage-roadmap issue 1085 (a retained file system blocks the
subnets); AWS's own clean-up scripts find the groups by the names used here.
"""

from collections.abc import Mapping

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import OWNER, Hooks
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Record
from rehearsal.core.properties import at
from rehearsal.dataplane import folders

_FILES, _TARGET = "efs/fileSystem:FileSystem", "efs/mountTarget:MountTarget"
_GROUP, _INTERFACE = "ec2/securityGroup:SecurityGroup", "ec2/networkInterface:NetworkInterface"
_WAYS = {"inbound": "ingress", "outbound": "egress"}


def _created(site: Site, domain: Record) -> None:
    """Create the home file system with a mount target and network interface in each subnet."""
    key = f"{domain.key}/{domain.id}"
    home = str(domain.outputs["homeEfsFileSystemId"])
    arn = f"arn:aws:elasticfilesystem:{site.region}:{site.account}:file-system/{home}"
    name = f"home file system of {domain.id}"
    files = site.hidden(domain, _FILES, home, {"id": home, "arn": arn}, {home, arn}, name=name)
    vpc = site.find(domain.inputs.get("vpcId"), "ec2/vpc:Vpc")
    groups = _groups(site, domain, vpc)
    for index, subnet in enumerate(domain.inputs.get("subnetIds") or ()):
        found = site.find(subnet, "ec2/subnet:Subnet")
        target, card = (f"{kind}-{draw(f'{key}/{kind}/{index}', 17)}" for kind in ("fsmt", "eni"))
        outputs = {"id": target, "fileSystemId": home, "subnetId": subnet, "networkInterfaceId": card}
        site.hidden(files, _TARGET, target, outputs, {target}, name=f"mount target of the {name}")
        uses = {"subnetId": found, "groups[0]": groups[0]}
        site.hidden(
            files,
            _INTERFACE,
            card,
            {"id": card, "subnetId": subnet, "description": f"EFS mount target for {home} ({target})"},
            {card},
            name=f"network interface of the {name}",
            uses={path: used for path, used in uses.items() if used is not None},
        )


def _groups(site: Site, domain: Record, vpc: Record | None) -> list[Record]:
    """Create two groups that refer to each other: neither can be deleted before its rules are removed."""
    ids = {way: f"sg-{draw(f'{domain.key}/{domain.id}/{way}', 17)}" for way in _WAYS}
    made = []
    for way, rule in _WAYS.items():
        other = next(ids[one] for one in _WAYS if one != way)
        name, group = f"security-group-for-{way}-nfs-{domain.id}", ids[way]
        outputs = {"id": group, "name": name, "vpcId": vpc.id if vpc else None, rule: other}
        made.append(site.hidden(domain, _GROUP, group, outputs, {group}, name=name))
    for record, named, rule in zip(made, reversed(made), _WAYS.values(), strict=True):
        site.state.refer(record, {OWNER: domain, rule: named, **({"vpcId": vpc} if vpc else {})})
    return made


def _deleting(site: Site, domain: Record) -> None:
    """Detach the retained file system and, always, the groups from the domain.

    They must be removed before the VPC can be deleted: aws-samples/sagemaker-studio-code-editor-template
    issue 1 and singlestore-labs/private-llm-aws issue 9.
    """
    files = site.find(domain.outputs.get("homeEfsFileSystemId"), _FILES)
    for use in site.state.users(domain):
        if use.user.type == f"{site.package}:{_GROUP}" and use.path == OWNER:
            _outlive(site, use.user)
    if files is not None and at(domain.outputs, "retentionPolicy.homeEfsFileSystem") != "Delete":
        site.release(files)


def _outlive(site: Site, group: Record) -> None:
    """Detach a group, which still blocks its VPC and the other group."""
    paths = {path: group.outputs.get(path) for path in (*_WAYS.values(), "vpcId")}
    near = {path: site.state.issued(str(value)) for path, value in paths.items() if value}
    site.state.refer(group, {path: found[0] for path, found in near.items() if found})


def _forget_runs(site: Site, app: Record) -> None:
    """Remove the runs of an MLflow App; its artifacts stay in the bucket."""
    folders.remove(folders.runs(site.state.path.parent, app.id))


HOOKS: Mapping[str, Hooks[Site]] = {
    "sagemaker/domain:Domain": Hooks(created=_created, deleting=_deleting),
    "sagemaker/mlflowApp:MlflowApp": Hooks(deleted=_forget_runs),
}
