"""Processors, memory and GPUs of a node as slurmd reports them."""

import re
from dataclasses import dataclass
from typing import Final

from infra.catalog.registry import CATALOGS

MEMORY_SHARE: Final = 0.95
"""Share of a machine's memory that a node line promises. slurmd sets a node with less memory than its line to
DRAIN, reason "Low RealMemory" (aws/aws-parallelcluster#1517, stackhpc/ansible-role-openhpc#92,
Azure/az-hop#686); AWS ParallelCluster promises 95 % (its documentation, `SchedulableMemory`)."""


@dataclass(frozen=True)
class NodeHardware:
    """A machine type; memory in MiB, without the part that the system keeps."""

    cpus: int
    memory_mib: int
    gpus: int = 0
    gpu_type: str = ""
    """Part of the name that NVML gives the GPU, in lower case, as `AutoDetect=nvml` compares it."""


def machine(cloud: str, name: str) -> NodeHardware | None:
    """The facts of a machine type; None where the catalog does not have its processors and memory."""
    found = CATALOGS[cloud].hardware(name)
    if found is None:
        return None
    memory_mib = int(found.memory_mib * MEMORY_SHARE)
    return NodeHardware(found.cpus, memory_mib, found.gpus, gpu_type(found.accelerator))


def gpu_type(accelerator: str) -> str:
    """The GRES type of a GPU of the catalog: `a100` of `a100-40` and of `nvidia-tesla-a100`.

    With AutoDetect, a type must be a part of the name that NVML reports (gres.conf), in lower case and with
    `_` for spaces, such as `nvidia_a100-sxm4-40gb`.
    """
    plain = re.sub(r"^(nvidia-)?(tesla-)?", "", accelerator)
    return plain.replace("-", "_") if plain.startswith("rtx") else plain.split("-")[0]
