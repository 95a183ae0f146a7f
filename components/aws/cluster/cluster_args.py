"""What a cluster is made of, and which wishes AWS would refuse or a security review would."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from components.aws.cluster.addons import addon_problems
from components.aws.pools.nodes import sizes_text
from infra.catalog.aws.model import EksAddon
from infra.errors import Problem

_CLUSTER_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
_PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(role|user)/\S+")
# A Graviton family has a `g` right behind its generation: m7g, c7gn, g5g (EC2 instance naming conventions).
_GRAVITON = re.compile(r"[a-z]+\d+g[a-z]*\.")


class SystemPoolArgs(TypedDict):
    """The nodes that run the cluster's own services, never training."""

    instance_types: Sequence[str]
    """EC2 types of one processor architecture, the preferred one first."""
    min_size: int
    """Fewest nodes."""
    max_size: int
    """Most nodes."""
    desired_size: int
    """Nodes at creation; later changes are the autoscaler's."""


class AwsClusterArgs(TypedDict):
    """What an `AwsCluster` is made of."""

    region: str
    """The provider's region."""
    name: str
    """The cluster's name, unique per account and region: at most 100 letters, digits, dashes, underscores."""
    kubernetes_version: str
    """Minor version, such as `1.34`, in EKS standard support."""
    subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Private subnets in at least two zones, with a way out."""
    endpoint_public_access_cidrs: Sequence[str]
    """Who may reach the API from the internet; empty closes the public endpoint."""
    admin_principal_arns: Sequence[str]
    """IAM roles or users that administer the cluster, the one that deploys included; at least one."""
    log_retention_days: int
    """Days that control-plane logs are kept: one of the periods CloudWatch Logs knows."""
    system_pool: SystemPoolArgs
    """The nodes for the cluster's own services."""
    addons: Sequence[str]
    """EKS add-ons by name."""
    tags: NotRequired[Mapping[str, str]]
    """Tags for what the provider's default tags do not reach: instances, their disks and interfaces."""
    deletion_protection: NotRequired[bool]
    """Let EKS refuse to delete the cluster until this is switched off."""


def is_graviton(instance_type: str) -> bool:
    """Whether the type has an arm64 processor."""
    return _GRAVITON.match(instance_type) is not None


def cluster_problems(args: AwsClusterArgs, known_addons: Mapping[str, EksAddon]) -> list[Problem]:
    """Everything in `args` that AWS would refuse or that would leave the cluster unusable or open."""
    problems = addon_problems(args["addons"], known_addons)
    if not _CLUSTER_NAME.fullmatch(args["name"]):
        rule = "must start with a letter or digit and hold at most 100 letters, digits, dashes, underscores"
        problems.append(Problem("name", args["name"], rule, "Choose another name."))
    for index, cidr in enumerate(args["endpoint_public_access_cidrs"]):
        problem = _public_cidr_problem(cidr)
        if problem:
            path = f"endpoint_public_access_cidrs[{index}]"
            problems.append(Problem(path, cidr, problem, "Name the office or VPN, such as 203.0.113.0/24."))
    problems += _admin_problems(args["admin_principal_arns"])
    pool = args["system_pool"]
    sizes = sizes_text(pool["min_size"], pool["desired_size"], pool["max_size"])
    if sizes:
        found = [pool["min_size"], pool["desired_size"], pool["max_size"]]
        problems.append(Problem("system_pool", found, sizes, "Change the sizes."))
    if len({is_graviton(kind) for kind in pool["instance_types"]}) != 1:
        rule = "must name types of one processor architecture"
        fix = "Keep either the Graviton types (m7g, ...) or the others."
        problems.append(Problem("system_pool.instance_types", list(pool["instance_types"]), rule, fix))
    return problems


def _public_cidr_problem(cidr: str) -> str | None:
    try:
        network = ipaddress.ip_network(cidr)
    except ValueError as error:
        return f"is no address block ({error})"
    return "opens the Kubernetes API to the whole internet" if network.prefixlen == 0 else None


def _admin_problems(principals: Sequence[str]) -> list[Problem]:
    path = "admin_principal_arns"
    problems = []
    if not principals:
        fix = "Name the IAM role that deploys, and whoever else administers the cluster."
        problems.append(Problem(path, [], "needs one principal, or nobody can reach the cluster", fix))
    if len(set(principals)) != len(principals):
        problems.append(Problem(path, list(principals), "names a principal twice", "Name each once."))
    for index, principal in enumerate(principals):
        if not _PRINCIPAL.fullmatch(principal):
            rule = "is no IAM role or user (a session of a role is none either)"
            fix = "Write it like arn:aws:iam::123456789012:role/platform."
            problems.append(Problem(f"{path}[{index}]", principal, rule, fix))
    return problems
