"""Rendezvous of a run's nodes, and the command line of one node (pure).

Static rendezvous everywhere: the index of a node and the address of node 0 are known, so no service has to
agree on them, and a restarted process group keeps its ranks. torchrun reads them from its arguments or, if
they are known only at start, from `PET_*` variables (torch.distributed.argparse_util.env). Commands
that run once per node read NODE_RANK, MASTER_ADDR and MASTER_PORT in their environment.
"""

import shlex

from infra.launchers.runplan import PER_NODE, RunPlan

# Run with the node's command as arguments, once NODE_RANK and MASTER_ADDR are known.
JOIN = 'export NODE_RANK MASTER_ADDR PET_NODE_RANK="$NODE_RANK" PET_MASTER_ADDR="$MASTER_ADDR"; exec "$@"'


def joining_command(plan: RunPlan) -> list[str]:
    """Return the arguments of one node's process, which reads its rank from the environment."""
    return list(plan.command) if plan.command_per == PER_NODE else ["torchrun", *plan.command]


def joining_environment(plan: RunPlan) -> dict[str, str]:
    """Return the variables of `joining_command` that are the same on every node, then the plan's own."""
    found = {"MASTER_PORT": str(plan.master_port)}
    if plan.command_per != PER_NODE:
        found |= {
            "PET_NNODES": str(plan.nodes),
            "PET_NPROC_PER_NODE": str(plan.ranks),
            "PET_MASTER_PORT": str(plan.master_port),
            "PET_MAX_RESTARTS": str(plan.max_restarts),
        }
    if plan.work_root:
        found["WORK_DIR"] = f"{plan.work_root}/{plan.name}"
    return {**found, **plan.env}


def exports(plan: RunPlan) -> list[str]:
    """Return the same variables as lines of bash."""
    return [f"export {name}={shlex.quote(value)}" for name, value in joining_environment(plan).items()]
