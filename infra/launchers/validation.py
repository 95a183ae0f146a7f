"""The validation itself as a run: the gate of a deploy, or started by hand (pure)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from infra.launchers.runplan import PER_NODE, Mount, RunPlan, shared_memory
from smoke_training.names import CONTROL_PORT_OFFSET, EXPERIMENT

CODE_FOLDER = "/opt/trainstack"
CODE_FILE, PLAN_FILE = "smoke_training.zip", "plan.json"
CHECKPOINTS = "/checkpoints"
RUNS = f"{CHECKPOINTS}/smoke"
USER_ID = 1000
HOME = "/tmp"  # noqa: S108 a volume of its own
PLAN_SCHEMA = "trainstack.smoke-plan/1"


@dataclass(frozen=True, kw_only=True)
class ValidationFiles:
    """Folders and objects of a validation's code, plan and results on the nodes."""

    code: str = CODE_FOLDER
    """Folder that holds smoke_training.zip and plan.json on every node."""
    config_map: str | None = None
    """ConfigMap with these two files, mounted there; null: they exist already."""
    claim: str | None = None
    """Claim for results and checkpoints; null: temporary space of the pods."""
    claim_folder: str | None = None
    """Folder of the claim to write to; null: its root."""
    login: str | None = None
    """Secret with the key `credentials`, the login file of MLflow's clients; null: none."""


def plan_text(
    plan: Mapping[str, Any], *, nodes: int, gpus_per_node: int, timeout_s: int, image: str, code_sha256: str
) -> str:
    """Return the smoke plan for the nodes of a run: facts of the stack, the run and its code."""
    whole = {
        **plan,
        "schema": PLAN_SCHEMA,
        "nodes": nodes,
        "gpus_per_node": gpus_per_node,
        "timeout_s": timeout_s,
        "image": image,
        "code_sha256": code_sha256,
    }
    return json.dumps(whole, sort_keys=True, indent=2, allow_nan=False)


def validation(run: RunPlan, files: ValidationFiles) -> RunPlan:
    """Turn `run` into a validation: one process per node starts ranks; node 0 judges and records.

    Name, image, nodes, queue etc. stay. Half the memory may be shared between ranks; the
    image is read-only, and no process is root.
    """
    env = {
        "TERMINATION_MESSAGE_PATH": "/dev/termination-log",
        # The user has no entry in the image's /etc/passwd.
        "HOME": HOME,
        "USER": "trainstack",
        "MLFLOW_EXPERIMENT_NAME": EXPERIMENT,
        **run.env,
    }
    if run.devices or run.device_claims:
        # NCCL falls back to TCP silently; only its log names the chosen provider.
        env["NCCL_DEBUG"] = "INFO"
    return replace(
        run,
        command=("python", f"{files.code}/{CODE_FILE}", "node", "--plan", f"{files.code}/{PLAN_FILE}"),
        command_per=PER_NODE,
        env=env,
        mounts=_mounts(run, files),
        root_folder=RUNS if files.claim else None,
        work_root=RUNS,
        user_id=USER_ID,
        read_only_root=True,
        ports={"control": run.master_port + CONTROL_PORT_OFFSET},
    )


def _mounts(run: RunPlan, files: ValidationFiles) -> tuple[Mount, ...]:
    code = Mount(name="code", path=files.code, config_map=files.config_map, read_only=True)
    # Path that MLflow's own clients read (mlflow 3.17, utils/credentials.py).
    login = Mount(name="login", path=f"{HOME}/.mlflow", secret=files.login, read_only=True)
    return (
        *((code,) if files.config_map else ()),
        Mount(name="checkpoints", path=CHECKPOINTS, claim=files.claim, sub_path=files.claim_folder),
        shared_memory(run.memory_gib),
        Mount(name="scratch", path=HOME),
        *((login,) if files.login else ()),
    )
