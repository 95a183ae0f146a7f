"""EKS add-ons: their settings, their AWS permissions, and those that must exist before a node joins."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.base import Component
from infra.catalog.aws.model import AddonIdentity, EksAddon
from infra.errors import Problem

# Per-node agents without which no node becomes ready. EKS reports them active before there is a node; the
# others need one to run on. The CNI must also outlive the nodes, because it releases their interfaces.
BEFORE_NODES = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
# A cluster without these runs no pod: EKS installs no copies of its own (bootstrap_self_managed_addons).
INDISPENSABLE = (*BEFORE_NODES, "coredns")

_DISKS = "aws-ebs-csi-driver"
_SETTINGS: dict[str, dict[str, object]] = {
    "vpc-cni": {
        # A /28 prefix in the place of one address: 16 times the pods per interface, far fewer calls to EC2.
        "env": {"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1"},
        # Enforces NetworkPolicy objects, so that teams' namespaces can be closed to each other. A new pod is
        # open for the moment until its policies are in force: mode `strict` would close it, and with it every
        # pod of the cluster that no policy names, CoreDNS too (EKS user guide, "Limit Pod traffic with
        # Kubernetes network policies").
        "enableNetworkPolicy": "true",
    },
    "eks-node-monitoring-agent": {
        # The agent reads GPUs through a host engine of its own, which has no tolerations by default: on
        # tainted nodes it would not run, and no GPU fault would reach node repair (containers-roadmap
        # issue 2567).
        "dcgmAgent": {"tolerations": [{"operator": "Exists"}]}
    },
}


def addon_problems(names: Sequence[str], known: Mapping[str, EksAddon]) -> Iterator[Problem]:
    """Problems of a choice of add-ons."""
    for index, name in enumerate(names):
        path, addon = f"addons[{index}]", known.get(name)
        if addon is None:
            rule, fix = "is no EKS add-on of the catalog", f"Choose from {sorted(known)}."
            yield Problem(path, name, rule, fix, code="unknown-eks-addon")
        elif any(not (one.managed_policies or one.actions or one.by_resource) for one in addon.identities):
            rule = "needs AWS permissions that no managed policy gives narrowly enough"
            fix = "Leave it out and install it with a policy of your own."
            yield Problem(path, name, rule, fix, code="addon-needs-own-policy")
    if len(set(names)) != len(names):
        rule, fix = "names an add-on twice", "Name each once."
        yield Problem("addons", list(names), rule, fix, code="addon-named-twice")
    if missing := [name for name in INDISPENSABLE if name not in names]:
        rule, fix = f"lacks {', '.join(missing)}", "Add them: without them no pod can run."
        yield Problem("addons", list(names), rule, fix, code="indispensable-addon-missing")


class Installed(NamedTuple):
    """An add-on, and the roles of its pods that have no permissions yet, by service account."""

    addon: aws.eks.Addon
    roles: Mapping[str, pulumi.Output[str]]
    """Names of roles; the creator of the resources that these pods use grants them access."""


def install(
    component: Component,
    name: str,
    *,
    addon: EksAddon,
    version: str | None,
    volume_tags: Mapping[str, str],
    disk_key_arn: str | None,
    cluster: aws.eks.Cluster,
    partition: pulumi.Output[str],
    depends_on: Sequence[pulumi.Resource],
) -> Installed:
    """Install one add-on, with a role of its own if it needs one.

    Without `version` EKS uses its default for the cluster, and keeps it. Volumes of claims get `volume_tags`,
    and their driver the right to use `disk_key_arn`.
    EKS owns the settings: manual changes in the cluster are reverted on the next update.
    """
    settings = _settings(addon.name, volume_tags)
    associations: list[aws.eks.AddonPodIdentityAssociationArgsDict] = []
    waits = list(depends_on)
    roles: dict[str, pulumi.Output[str]] = {}
    for identity in addon.identities:
        role, permissions = _pod_role(
            component,
            f"{name}-{addon.name}" + ("-node" if identity.by_resource else ""),
            addon=addon,
            identity=identity,
            disk_key_arn=disk_key_arn if addon.name == _DISKS else None,
            cluster=cluster,
            partition=partition,
        )
        waits += permissions
        if identity.by_resource:
            roles[identity.service_account] = role.name
            # EKS associates those accounts with an add-on that it recommends roles for; this one is ours.
            own = aws.eks.PodIdentityAssociation(
                f"{name}-{addon.name}-node-identity",
                cluster_name=cluster.name,
                namespace=addon.namespace,
                service_account=identity.service_account,
                role_arn=role.arn,
                opts=component.child(),
            )
            waits.append(own)
        else:
            account = identity.service_account
            associations.append({"role_arn": role.arn, "service_account": account})
    made = aws.eks.Addon(
        f"{name}-{addon.name}",
        cluster_name=cluster.name,
        addon_name=addon.name,
        addon_version=version,
        configuration_values=json.dumps(settings, sort_keys=True) if settings else None,
        pod_identity_associations=associations or None,
        resolve_conflicts_on_create="OVERWRITE",
        resolve_conflicts_on_update="OVERWRITE",
        opts=component.child(pulumi.ResourceOptions(depends_on=waits)),
    )
    return Installed(made, roles)


def _settings(addon: str, volume_tags: Mapping[str, str]) -> Mapping[str, object] | None:
    """The settings of an add-on.

    Volumes of claims are made by the driver of EBS: the tags of the provider do not reach them, and budgets
    and policies of organizations look for them at the creation. The driver splits its list at commas.
    """
    if addon == _DISKS:
        fit = {key: value for key, value in volume_tags.items() if "," not in f"{key}{value}"}
        return {"controller": {"extraVolumeTags": fit}}
    return _SETTINGS.get(addon)


def _pod_role(
    component: Component,
    name: str,
    *,
    addon: EksAddon,
    identity: AddonIdentity,
    disk_key_arn: str | None,
    cluster: aws.eks.Cluster,
    partition: pulumi.Output[str],
) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
    role = iam.role(
        component,
        f"{name}-role",
        cluster.arn.apply(lambda arn: iam.pod_identity_trust(arn, addon.namespace, identity.service_account)),
        description=f"EKS add-on {addon.name}, service account {addon.namespace}/{identity.service_account}",
    )
    rights: list[pulumi.Resource] = [
        aws.iam.RolePolicyAttachment(
            f"{name}-{policy.rsplit('/', 1)[-1]}",
            role=role.name,
            policy_arn=iam.managed_policy_arn(partition, policy),
            opts=component.child(),
        )
        for policy in identity.managed_policies
    ]
    if disk_key_arn is not None:
        key = _disk_rights(disk_key_arn)
        rights.append(aws.iam.RolePolicy(f"{name}-key", role=role.name, policy=key, opts=component.child()))
    if identity.actions:
        document = iam.document(iam.allow(identity.actions, ["*"]))
        rights.append(
            aws.iam.RolePolicy(f"{name}-rights", role=role.name, policy=document, opts=component.child())
        )
    return role, rights


def _disk_rights(key_arn: str) -> str:
    """Rights that the managed policy has not (EKS user guide, "Amazon EBS CSI driver").

    EC2 asks for a grant on the key of the volume at each attachment (awsdocs/aws-kms-developer-guide issue 2;
    the driver's issue 935), and volumes outlive a change of the key: all keys of the account and region are
    allowed. As in the policy of `aws/ebs`, only EC2 may use them; the policy of each key decides as well.
    """
    any_key = f"{key_arn.partition('/')[0]}/*"
    region = key_arn.split(":")[3]
    through = {"StringEquals": {"kms:ViaService": f"ec2.{region}.amazonaws.com"}}
    used = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
    granted = {**through, "Bool": {"kms:GrantIsForAWSResource": "true"}}
    return iam.document(
        {**iam.allow(used, [any_key]), "Condition": through},
        {**iam.allow(["kms:CreateGrant"], [any_key]), "Condition": granted},
    )
