"""Rules of stacks on AWS."""

import ipaddress
import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from infra.catalog.aws import facts
from infra.catalog.errors import UnknownFactError
from infra.errors import Problem
from infra.stackspec.clouds import AwsSpec
from infra.stackspec.layouts import MediumLayout
from infra.stackspec.stack import StackSpec

Rule = Callable[[StackSpec, AwsSpec], Iterator[Problem]]
MediumRule = Callable[[StackSpec, MediumLayout], Iterator[Problem]]

_RESERVATION = re.compile(r"cr-[0-9a-f]{8,17}")
_PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(role|user)/\S+")


def region(spec: StackSpec, _: AwsSpec) -> Iterator[Problem]:
    """The region is known."""
    regions = facts.regions
    if spec.region not in regions:
        known = f"Known are {', '.join(sorted(regions))}."
        yield Problem("trainstack:region", spec.region, "unknown region", known)


def database(_: StackSpec, cloud: AwsSpec) -> Iterator[Problem]:
    """The database is not larger at its smallest than at its largest."""
    smallest, largest = cloud.database.min_acu, cloud.database.max_acu
    if smallest > largest:
        path, rule = "on.database.min_acu", f"above max_acu {largest}"
        yield Problem(path, smallest, rule, "Lower it or raise max_acu.", against="on.database.max_acu")


def administrators(_: StackSpec, cloud: AwsSpec) -> Iterator[Problem]:
    """Administrators are IAM roles or users, each named once."""
    for index, arn in enumerate(cloud.admin_arns):
        if not _PRINCIPAL.fullmatch(arn):
            rule = "must be an IAM role or user ARN, not an assumed-role session"
            fix = "Write it like arn:aws:iam::123456789012:role/platform."
            yield Problem(f"on.admin_arns[{index}]", arn, rule, fix)
    if len(set(cloud.admin_arns)) < len(cloud.admin_arns):
        yield Problem("on.admin_arns", list(cloud.admin_arns), "names one twice", "Name each once.")


def zones(spec: StackSpec, layout: MediumLayout) -> Iterator[Problem]:
    """Zones are zones of the region, at least two of them."""
    found = facts.regions.get(spec.region)
    for index, zone in enumerate(layout.zones):
        if found and zone not in found.zones:
            fix = f"{spec.region} has {', '.join(found.zones)}."
            yield Problem(f"layout.zones[{index}]", zone, f"not a zone of {spec.region}", fix)
    if not 2 <= len(layout.zones) <= 6:
        rule = "EKS needs two zones; the network has room for six"
        yield Problem("layout.zones", list(layout.zones), rule, "Name two to six zones.")


def network_range(_: StackSpec, layout: MediumLayout) -> Iterator[Problem]:
    """The VPC range is a private network of a size that holds nodes, pods and EFA interfaces."""
    path, cidr = "layout.network_cidr", layout.network_cidr
    try:
        network = ipaddress.ip_network(cidr)
    except ValueError as error:
        yield Problem(path, cidr, str(error), "Write a network such as 10.0.0.0/16.")
        return
    if not 16 <= network.prefixlen <= 18:
        fix = "Use /16 to /18: AWS allows no larger VPC, and pods of GPU nodes need the addresses."
        yield Problem(path, cidr, "the range has the wrong size", fix)
    if not network.is_private:
        yield Problem(path, cidr, "not a private range", "Use 10.0.0.0/8 or 172.16.0.0/12.")


def api_access(_: StackSpec, layout: MediumLayout) -> Iterator[Problem]:
    """The API server is not open to the whole internet."""
    for index, cidr in enumerate(layout.api_access):
        path = f"layout.api_access[{index}]"
        try:
            network = ipaddress.ip_network(cidr)
        except ValueError as error:
            yield Problem(path, cidr, str(error), "Write the range of your office or VPN.")
            continue
        if network.prefixlen < 8:
            fix = "Name the ranges of your office or VPN, or leave the list empty."
            yield Problem(path, cidr, "opens the Kubernetes API to the internet", fix)


def kubernetes_version(_: StackSpec, layout: MediumLayout) -> Iterator[Problem]:
    """The version is one that EKS offers."""
    offered = facts.eks.versions
    if layout.kubernetes_version not in offered:
        path, fix = "layout.kubernetes_version", f"Use one of {', '.join(offered)}."
        yield Problem(path, layout.kubernetes_version, "not a version EKS supports", fix)


def pool_hardware(_: StackSpec, layout: MediumLayout) -> Iterator[Problem]:
    """Each pool names a GPU type that exists, with RDMA only where there is EFA."""
    for index, pool in enumerate(layout.pools):
        path = f"layout.pools[{index}]"
        try:
            machine = facts.instance_type(pool.machine)
        except UnknownFactError as error:
            yield Problem(f"{path}.machine", pool.machine, "unknown accelerator type", str(error))
            continue
        if pool.rdma and not machine.efa:
            with_efa = sorted(
                name
                for name, other in facts.instance_types.items()
                if other.efa and other.accelerator == machine.accelerator
            )
            fix = f"Set {path}.rdma to false" + (f", or use {', '.join(with_efa)}." if with_efa else ".")
            yield Problem(f"{path}.rdma", True, f"{pool.machine} has no EFA", fix)
        if pool.purchase.kind == "block" and not machine.capacity_block:
            fix = "Use on_demand, spot or reserved."
            yield Problem(f"{path}.purchase.kind", "block", f"{pool.machine} is not sold in blocks", fix)
        if pool.purchase.kind in ("reserved", "block") and not _RESERVATION.fullmatch(pool.purchase.id):
            rule = "must be the id of a capacity reservation or block"
            fix = "Write it like cr-0123456789abcdef0."
            yield Problem(f"{path}.purchase.id", pool.purchase.id, rule, fix)


def shared_file_system(spec: StackSpec, _: MediumLayout) -> Iterator[Problem]:
    """The file system has a size that FSx sells."""
    wanted = spec.data.shared_fs
    if wanted is None:
        return
    problem = facts.lustre.lustre_problem(wanted.capacity_gib, wanted.throughput_mb_s_per_tib, wanted.rdma)
    if problem:
        fix = "Change it to a size that exists."
        yield Problem("data.shared_fs", f"{wanted.capacity_gib} GiB", problem, fix)


def quotas(spec: StackSpec, layout: MediumLayout) -> Iterator[Problem]:
    """Guarantees never add up to more than a pool can hold beside the gate."""
    promised: dict[str, int] = defaultdict(int)
    for team in spec.teams:
        for pool, gpus in team.gpus.items():
            promised[pool] += gpus
    for index, item in enumerate(layout.pools):
        machine = facts.instance_types.get(item.machine)
        gate = spec.smoke.nodes if spec.smoke.enabled and spec.smoke.pool == item.name else 0
        free = item.max_nodes - gate
        if machine and promised[item.name] > machine.accelerator_count * free:
            rule = f"teams are guaranteed {promised[item.name]} GPUs, more than {free} nodes have"
            kept = (
                f" ({gate} of {item.max_nodes} nodes must be free to validate a deployment)" if gate else ""
            )
            fix = "Lower the guarantees under teams[].gpus (idle GPUs can be borrowed) or raise max_nodes."
            yield Problem(f"layout.pools[{index}].max_nodes", item.max_nodes, rule + kept, fix)


RULES: tuple[Rule, ...] = (region, database, administrators)
MEDIUM_RULES: tuple[MediumRule, ...] = (
    zones,
    network_range,
    api_access,
    kubernetes_version,
    pool_hardware,
    shared_file_system,
    quotas,
)
