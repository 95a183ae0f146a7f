"""How much of a node jobs may ask for."""

import math

from components.aws.pools import efa as efa_driver
from infra.catalog.aws.model import InstanceType

# EKS's AL2023 nodes keep CPU for kubelet and system by a falling share of the cores (6 %, 1 %, 0.5 %, 0.5 %,
# then 0.25 % of each further core), and memory by the number of pods: 255 MiB + 11 MiB a pod, with up to 110
# pods on small and 250 on large nodes. Source: awslabs/amazon-eks-ami, templates/al2023 (nodeadm kubelet
# configuration), read 2026-11-21.
_CPU_SHARES = (0.06, 0.01, 0.005, 0.005)
_CPU_SHARE_BEYOND = 0.0025
_PODS = 250
_MEMORY_BASE_MIB, _MEMORY_PER_POD_MIB, _EVICTION_MIB = 255, 11, 100
# What our own agents on every node take: CNI, kube-proxy, CSI drivers, device plugins, DCGM, monitoring.
_AGENTS_CPU, _AGENTS_MEMORY_MIB = 1.0, 3072
# What the EFA driver sets aside on every node, in whole GiB.
EFA_HUGE_PAGES_GIB = math.ceil(efa_driver.HUGE_PAGES * efa_driver.HUGE_PAGE_MIB / 1024)


def cores_for_jobs(machine: InstanceType) -> int:
    """Whole cores per node that are left for jobs."""
    shares = [*_CPU_SHARES[: machine.vcpu], *[_CPU_SHARE_BEYOND] * max(0, machine.vcpu - len(_CPU_SHARES))]
    return math.floor(machine.vcpu - sum(shares) - _AGENTS_CPU)


def memory_for_jobs_gib(machine: InstanceType, *, efa: bool) -> int:
    """Whole GiB per node that are left for jobs; the EFA driver's huge pages are set aside before."""
    reserved = _MEMORY_BASE_MIB + _MEMORY_PER_POD_MIB * _PODS + _EVICTION_MIB + _AGENTS_MEMORY_MIB
    return math.floor((machine.memory_mib - reserved) / 1024) - (EFA_HUGE_PAGES_GIB if efa else 0)
