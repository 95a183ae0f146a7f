"""The validation itself as a run, for places that the deploy does not reach by itself (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from smoke_training.launchers.runplan import PER_NODE, Mount, RunPlan
from smoke_training.plan import Plan

CODE_FILE, PLAN_FILE = "smoke_training.zip", "plan.json"
CHECKPOINTS = "/checkpoints"
TERMINATION_LOG = "/dev/termination-log"
USER_ID = 1000


@dataclass(frozen=True, kw_only=True)
class Site:
    """What the plan of a validation does not say about the nodes; cores, GiB and devices per node."""

    cpu: int
    memory_gib: int
    efa_per_node: int = 0
    code: str = "/opt/trainstack"
    """Folder that holds smoke_training.zip and plan.json on every node."""
    config_map: str | None = None
    """ConfigMap with these two files, mounted there; null: they are there already."""
    claim: str | None = None
    """Claim for results and checkpoints; null: they go with the pods."""
    name: str = "validation"
    namespace: str | None = None
    queue: str | None = None
    priority: str | None = None
    node_labels: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def validation(plan: Plan, site: Site) -> RunPlan:
    """One process a node, which starts the node's ranks, judges on node 0 and records.

    Half the memory may be shared between ranks; the image stays unwritten, and nobody is root.
    """
    env = {
        "WORK_DIR": f"{CHECKPOINTS}/smoke/{site.name}",
        "TERMINATION_MESSAGE_PATH": TERMINATION_LOG,
        # The user has no entry in the image's /etc/passwd.
        "HOME": "/tmp",  # noqa: S108 a volume of its own
        "USER": "trainstack",
        **site.environment,
    }
    if site.efa_per_node:
        # NCCL falls back to TCP without a word; only its log tells which provider it chose.
        env["NCCL_DEBUG"] = "INFO"
    return RunPlan(
        name=site.name,
        image=plan.image,
        command=("python", f"{site.code}/{CODE_FILE}", "node", "--plan", f"{site.code}/{PLAN_FILE}"),
        command_per=PER_NODE,
        nodes=plan.nodes,
        ranks_per_node=plan.ranks_per_node,
        gpus_per_node=plan.gpus_per_node,
        efa_per_node=site.efa_per_node,
        cpu=site.cpu,
        memory_gib=site.memory_gib,
        env=env,
        mounts=_mounts(site),
        root_folder=f"{CHECKPOINTS}/smoke" if site.claim else None,
        namespace=site.namespace,
        queue=site.queue,
        priority=site.priority,
        node_labels=site.node_labels,
        user_id=USER_ID,
        read_only_root=True,
        timeout_s=int(plan.timeout_s),
        instance_type=plan.instance_type,
    )


def _mounts(site: Site) -> tuple[Mount, ...]:
    code = Mount(name="code", path=site.code, config_map=site.config_map, read_only=True)
    return (
        *((code,) if site.config_map else ()),
        Mount(name="checkpoints", path=CHECKPOINTS, claim=site.claim),
        Mount(name="shared-memory", path="/dev/shm", memory_gib=max(1, site.memory_gib // 2)),  # noqa: S108
        Mount(name="scratch", path="/tmp"),  # noqa: S108 a volume of its own
    )
