"""Common parts of the requests of managed training services (pure).

Each service describes a node's rank in its own document, which two lines of Python in the container read.
"""

from typing import TypeVar

from smoke_training.launchers.rendezvous import JOIN
from smoke_training.launchers.runplan import RunPlan, RunPlanError, SageMakerOptions, VertexOptions

Options = TypeVar("Options", SageMakerOptions, VertexOptions)

START = "TRAINSTACK_START"
PACK = "code.tar.gz"  # archive in a folder of code


def start(rank: str, first: str = "") -> str:
    """Return the container's script: `first`, read the node's rank, then exec the node's command."""
    return f"set -e; {first}P=$(python3 -c '{rank}'); NODE_RANK=${{P% *}} MASTER_ADDR=${{P#* }}; {JOIN}"


def part_of(plan: RunPlan, service: str, options: Options | None, missing: str) -> Options:
    """Return the plan's section for the service; RunPlanError for unsupported fields."""
    problems = [
        f"mounts[{index}]: {service} mounts no claims, ConfigMaps and Secrets; use its own storage"
        for index, mount in enumerate(plan.mounts)
        if mount.claim or mount.config_map or mount.secret
    ]
    if not plan.instance_type:
        problems.append(f"instance_type: missing; {service} buys the machines itself")
    if options is None:
        problems.append(missing)
    if problems or options is None:
        raise RunPlanError(problems)
    return options
