"""Runs without Kubernetes: a script for Slurm's sbatch, and one to start by hand on every node (pure)."""

import shlex
from collections.abc import Iterator

from infra.launchers.rendezvous import JOIN, exports, joining_command
from infra.launchers.runplan import RunPlan, RunPlanError

CODE_URI = "TRAINSTACK_CODE_URI"
"""Variable of a plan with the folder of code in the object store, for those who submit it."""
_HEAD = "#!/bin/bash"
_STRICT = "set -euo pipefail"


def sbatch(plan: RunPlan) -> str:
    """Render a batch script: one task per node, which starts the node's ranks. Tested on Slurm 22.05.

    A squash file of the image is run by pyxis (github.com/NVIDIA/pyxis); claims are taken
    to be folders of every node. Raises RunPlanError for mounts that only Kubernetes has.
    """
    _refuse_objects(plan, "Slurm")
    lines = [
        _HEAD,
        *(f"#SBATCH --{option}" for option in _options(plan)),
        _STRICT,
        "",
        'nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")',
        "export MASTER_ADDR=${nodes%%$'\\n'*}",
        *exports(plan),
        "",
    ]
    srun = [
        # srun does not inherit --cpus-per-task since Slurm 22.05 (its release notes).
        f"srun --nodes=$SLURM_NNODES --ntasks-per-node=1 --cpus-per-task={plan.cpu} --kill-on-bad-exit=1",
        *_container(plan),
    ]
    # sbatch copies the environment of the login node, with its HOSTNAME, to every node.
    join = f'NODE_RANK="$SLURM_NODEID"; export NODE_NAME="$SLURMD_NODENAME"; {JOIN}'
    srun += [f"bash -c {shlex.quote(join)} node", shlex.join(joining_command(plan))]
    return "\n".join([*lines, " \\\n  ".join(srun)]) + "\n"


def torchrun(plan: RunPlan) -> str:
    """Render a script that is started once on every node."""
    _refuse_objects(plan, "a script")
    lines = [_HEAD]
    if plan.nodes > 1:
        lines += [
            f"# Start on each of {plan.nodes} nodes, with NODE_RANK (0 .. {plan.nodes - 1}) and MASTER_ADDR",
            "# (the address of node 0) set.",
            _STRICT,
            f': "${{NODE_RANK:?set it to the index of this node, 0 .. {plan.nodes - 1}}}"',
            ': "${MASTER_ADDR:?set it to the address of node 0}"',
        ]
    else:
        lines += [_STRICT, "export NODE_RANK=0 MASTER_ADDR=127.0.0.1"]
    lines += exports(plan)
    lines.append(f"exec bash -c {shlex.quote(JOIN)} node {shlex.join(joining_command(plan))}")
    return "\n".join(lines) + "\n"


def _options(plan: RunPlan) -> Iterator[str]:
    yield f"job-name={plan.name}"
    for key in ("partition", "account", "qos"):
        value = getattr(plan.slurm, key)
        if value:
            yield f"{key}={value}"
    yield f"nodes={plan.nodes}"
    yield "ntasks-per-node=1"
    yield f"cpus-per-task={plan.cpu}"
    yield f"mem={plan.memory_gib}G"
    if plan.gpus_per_node:
        yield f"gpus-per-node={plan.gpus_per_node}"
    yield "exclusive"
    minutes, seconds = divmod(plan.deadline_s, 60)
    yield f"time={minutes}:{seconds:02d}"
    # Time for the job's last writes before the limit.
    yield f"signal=TERM@{plan.grace_s}"
    # After the loss of a node or a preemption the job runs again: its log goes on.
    yield "requeue"
    yield "open-mode=append"
    yield "output=%x-%j.log"


def _container(plan: RunPlan) -> Iterator[str]:
    if plan.slurm.image_file is None:
        return
    yield f"--container-image={shlex.quote(plan.slurm.image_file)}"
    shared = [
        f"{mount.path}:{mount.path}" + (":ro" if mount.read_only else "")
        for mount in plan.mounts
        if mount.claim
    ]
    if shared:
        yield f"--container-mounts={shlex.quote(','.join(shared))}"


def _refuse_objects(plan: RunPlan, place: str) -> None:
    fix = "put the files into the image or on shared storage"
    found = [
        f"mounts[{index}].{kind}: {place} has no {what}; {fix}"
        for index, mount in enumerate(plan.mounts)
        for kind, what in (("config_map", "ConfigMaps"), ("secret", "Secrets"))
        if getattr(mount, kind)
    ]
    if plan.sidecars or plan.profile:
        found.append(f"sidecars, profile: {place} has none; start what the fabric needs on every node")
    if found:
        raise RunPlanError(found)
