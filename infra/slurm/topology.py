"""gres.conf, and the switches above the nodes: topology.conf, from Slurm 25.05 on topology.yaml."""

from collections.abc import Iterator

from infra.slurm.options import YAML_TOPOLOGY
from infra.slurm.system import Partition, SlurmSystem, host_list


def gres_conf(system: SlurmSystem) -> str:
    """gres.conf: the driver names the GPUs of a node, their cores and links."""
    lines = ["# slurmd asks NVML for the GPUs, their cores and links; nodes without GPUs have no line."]
    lines += [
        f"NodeName={one.node_names} AutoDetect=nvml Name=gpu Type={one.machine.gpu_type}"
        for one in system.partitions
        if one.machine.gpus
    ]
    return "\n".join(lines) + "\n"


def switches(system: SlurmSystem) -> Iterator[tuple[str, str]]:
    """Leaf switches and the nodes below each, as a host list.

    A pool is one switch, or several of `nodes_per_switch` nodes where it has RDMA: the racks of own hardware.
    Which nodes of a cloud are near each other is known only when they run.
    """
    for one in system.partitions:
        yield from _leaves(one, system.options.nodes_per_switch if one.rdma else 0)


def _leaves(one: Partition, size: int) -> Iterator[tuple[str, str]]:
    if not size or size >= one.nodes:
        yield f"leaf-{one.name}", one.node_names
        return
    for number, first in enumerate(range(1, one.nodes + 1, size), start=1):
        yield f"leaf-{one.name}-{number}", host_list(one.name, first, min(first + size - 1, one.nodes))


def topology(system: SlurmSystem) -> tuple[str, str]:
    """The name and text of the file.

    Above all leaves is one switch: nodes without a common switch cannot run one job (topology.conf).
    """
    leaves = [*switches(system)]
    children = ",".join(name for name, _ in leaves)
    if system.options.release < YAML_TOPOLOGY:
        lines = [f"SwitchName={name} Nodes={nodes}" for name, nodes in leaves]
        return "topology.conf", "\n".join([*lines, f"SwitchName=all-pools Switches={children}"]) + "\n"
    lines = ["- topology: tree", "  cluster_default: true", "  tree:", "    switches:"]
    lines += ["      - switch: all-pools", f"        children: {children}"]
    for name, nodes in leaves:
        lines += [f"      - switch: {name}", f"        nodes: {nodes}"]
    return "topology.yaml", "\n".join(lines) + "\n"
