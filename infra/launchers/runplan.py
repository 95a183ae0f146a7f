"""The run plan: one distributed run, independent of its target (pure).

A run is `nodes` machines of one kind, one container each, all of them with the same command.
"""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from smoke_training.reader import Count, DocumentError, ValueRule, Whole, parsed, read

SCHEMA = "trainstack.run-plan/3"
PER_RANK, PER_NODE = "rank", "node"
_NAME = r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?"

Name = Annotated[
    str,
    ValueRule(
        lambda value: re.fullmatch(_NAME, value) is not None,
        "must be at most 40 of a-z, 0-9 and -, begin with a letter and end with no -",
    ),
]
Image = Annotated[
    str, ValueRule(lambda value: "@sha256:" in value, "must be named by digest, NAME@sha256:DIGEST")
]
Per = Annotated[str, ValueRule(lambda value: value in (PER_RANK, PER_NODE), "must be rank or node")]
Port = Annotated[int, ValueRule(lambda value: 0 < value < 65536, "must be 1 .. 65535")]


class RunPlanError(DocumentError):
    """A run plan that cannot be rendered."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A folder in every container: a claim, a ConfigMap, a Secret, or else temporary space."""

    name: str
    path: str
    claim: str | None = None
    config_map: str | None = None
    secret: str | None = None
    """The Secret whose keys are the files. Not in the environment, which every child process and crash report
    has."""
    sub_path: str | None = None
    read_only: bool = False
    memory_gib: int | None = None
    """Maximum GiB of temporary space in memory. Null: on the node's disk."""
    host: str | None = None
    """Folder of the node itself, with the files of a fabric's driver."""


@dataclass(frozen=True, kw_only=True)
class Sidecar:
    """A container beside that of the run, in its network: it starts before it and is ended after it."""

    name: str
    image: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    capabilities: tuple[str, ...] = ()
    """Additional Linux capabilities of its root, such as `NET_ADMIN`."""
    mounts: tuple[Mount, ...] = ()
    """Folders; one with the name of a folder of the run is the same one."""
    ready_file: str | None = None
    """File that it writes when ready; the run starts after that. Null: ready when started."""
    cpu: Count
    memory_gib: Count


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A plugin of NCCL that an agent installs on nodes: a run starts after its installation."""

    image: str
    """Image that the agent pulled to the node, with bash."""
    installed: str
    """File in containers with GPUs that the agent creates last."""
    folder: str | None = None
    """Folder of the plugin in containers with GPUs. Null: it has none of its own."""
    linked: str | None = None
    """Path at which the run's container has that folder, too."""
    paired: bool = False
    """A daemon in the pod needs this version; a newer one is of no use."""


def shared_memory(memory_gib: int) -> Mount:
    """Shared memory of a node's ranks: at most half of the node's `memory_gib`, part of it.

    The 64 MiB of containers are too few for their buffers.
    """
    return Mount(name="shared-memory", path="/dev/shm", memory_gib=max(1, memory_gib // 2))  # noqa: S108


@dataclass(frozen=True, kw_only=True)
class SageMakerOptions:
    """Additional fields for Amazon SageMaker."""

    role_arn: str
    output_uri: str
    """`s3://...`, where the service stores /opt/ml/model."""
    job_name: str | None = None
    """Name of the job, at most 63 letters, digits and dashes; null: the run's."""
    checkpoint_uri: str | None = None
    """`s3://...` synchronized with /opt/ml/checkpoints."""
    channels: Mapping[str, str] = field(default_factory=dict)
    """`s3://...` prefixes by channel, copied to /opt/ml/input/data/<channel> of every node at first."""
    code_channel: str | None = None
    """The channel with a code.tar.gz, which is unpacked to /opt/ml/code, where the command then runs."""
    kms_key: str | None = None
    """KMS key of the service's writes to `output_uri`; null: the bucket's own."""
    volume_kms_key: str | None = None
    """KMS key of the disk, for machines without their own encryption; null: the service's."""
    spot: bool = False
    max_wait_s: int | None = None
    """Of a spot run: seconds of waiting and running together; null: no waiting."""
    keep_alive_s: int | None = None
    """Seconds for which its machines stay warm for the next run, billed; null: none."""
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    volume_gib: int = 200
    training_plan_arn: str | None = None
    """ARN of a training plan with reserved machines of the same type; null: none."""


@dataclass(frozen=True, kw_only=True)
class VertexOptions:
    """Additional fields for Vertex AI."""

    accelerator_type: str | None = None
    """As the API spells it, such as `NVIDIA_H100_80GB`; null for a machine without."""
    service_account: str | None = None
    network: str | None = None
    """`projects/NUMBER/global/networks/NAME`."""
    output_uri: str | None = None
    """`gs://...`, the base directory, in the AIP_* variables."""
    job_name: str | None = None
    """Name of the job, at most 128 characters; null: the run's."""
    code_uri: str | None = None
    """`gs://...` folder that every node has at /tmp/trainstack/code."""
    packed: bool = False
    """True if it has a code.tar.gz, which is unpacked to /tmp/trainstack/run, where the command then runs."""
    folder_each: bool = False
    """True if every job of this request gets its own WORK_DIR, ending with the job's id."""
    kms_key: str | None = None
    """KMS key of the job's disks; null: Google's."""
    spot: bool = False
    """Spot machines, which the cloud may preempt; the service restarts the job up to six times."""
    flex_wait_s: int | None = None
    """Flex-start: how many seconds the job waits for its machines; null: it does not wait."""
    reservation: str | None = None
    """`projects/PROJECT/zones/ZONE/reservations/NAME` of the machines; null: any."""
    boot_disk_gb: int = 200


@dataclass(frozen=True, kw_only=True)
class SlurmOptions:
    """Additional fields for Slurm."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    image_file: str | None = None
    """Squash file of the image that every node has (`enroot import`), run by pyxis: enroot takes no digest.
    Null: the run uses the software of the nodes."""


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """One run. Memory in GiB, times in seconds, cores and devices per node."""

    name: Name
    image: Image
    """By digest: a tag may be another image on the next node."""
    command: tuple[str, ...]
    """Command of every rank (`train.py ...` or `-m package ...`, under torchrun), or of every node."""
    command_per: Per = PER_RANK
    """`rank`: torchrun starts the command. `node`: it runs once per node and starts its own ranks."""
    nodes: Count
    ranks_per_node: Count | None = None
    """Null: one per GPU, or one without GPUs."""
    gpus_per_node: Whole = 0
    devices: Mapping[str, str] = field(default_factory=dict)
    """Further resources of a pod in the units of Kubernetes, such as `vpc.amazonaws.com/efa: "4"`."""
    device_claims: Mapping[str, str] = field(default_factory=dict)
    """Devices by claim: a name in the pod, and its ResourceClaimTemplate."""
    cpu: Count
    memory_gib: Count
    env: Mapping[str, str] = field(default_factory=dict)
    profile: str | None = None
    """A bash file on every node that sets the variables of its fabric; NCCL variables in `env` override
    it."""
    plugin: Plugin | None = None
    """On Kubernetes: the plugin to wait for. Null: none, or part of the image."""
    mounts: tuple[Mount, ...] = ()
    sidecars: tuple[Sidecar, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of pods, such as their networks."""
    root_folder: str | None = None
    """Folder that root creates, writable for all, before a node starts; new file systems belong to root."""
    work_root: str | None = None
    """Base of the run's own folder, named after the run, in WORK_DIR."""
    checkpoint_policy: bool = False
    """True if pods on Kubernetes read the checkpoint policy of their namespace, if it has one, and may write
    the time of their last checkpoint into their own annotation."""
    namespace: str | None = None
    service_account: str | None = None
    service: str | None = None
    """Headless Service that resolves the nodes; null: one of the run's own name."""
    queue: str | None = None
    """Kueue LocalQueue."""
    priority: str | None = None
    """Kueue WorkloadPriorityClass."""
    labels: Mapping[str, str] = field(default_factory=dict)
    node_labels: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    """Labels of nodes; of several values a node has one."""
    topology_level: str | None = None
    """Node label of the preferred network layer."""
    user_id: int | None = None
    """User and group of the processes; null: the image's."""
    read_only_root: bool = False
    """True for a read-only image; writes then go to mounts."""
    master_port: Port = 29500
    ports: Mapping[str, int] = field(default_factory=dict)
    """Further ports between nodes, by name."""
    timeout_s: Count
    startup_timeout_s: Whole = 1200
    """Time from admission to the first step: a new node boots and pulls the image."""
    grace_s: Whole = 60
    max_restarts: Whole = 0
    """Maximum restarts of all ranks, from the last checkpoint, after one failed."""
    kept_s: Whole | None = 7 * 24 * 3600
    """Time after its end at which Kubernetes deletes a Job or JobSet, with its pods and their logs; null:
    never, which slows down the API server in the end. A TrainJob has no such limit; a CronJob keeps three."""
    instance_type: str | None = None
    """The cloud's machine type, such as `p5.48xlarge`; for services that provision machines themselves."""
    sagemaker: SageMakerOptions | None = None
    vertex: VertexOptions | None = None
    slurm: SlurmOptions = SlurmOptions()

    @property
    def ranks(self) -> int:
        """Number of ranks on one node."""
        return self.ranks_per_node or self.gpus_per_node or 1

    @property
    def deadline_s(self) -> int:
        """Limit of start-up and run together."""
        return self.startup_timeout_s + self.timeout_s


# Kinds of a mount; at most one.
_CONTENTS = ("claim", "config_map", "secret", "memory_gib", "host")
_ENV = r"[A-Za-z_][A-Za-z0-9_]*"
# The launcher sets these, differently on every node.
_RESERVED = {
    "NODE_NAME",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "WORK_DIR",
}


def parse(text: str) -> RunPlan:
    """Read a run plan document; RunPlanError lists every problem as `path: got value; rule`."""
    try:
        document = parsed(text, "run plan")
    except DocumentError as error:
        raise RunPlanError(error.problems) from error
    problems = [] if document.pop("schema", None) == SCHEMA else [f'schema: must be "{SCHEMA}"']
    plan = read(RunPlan, document, problems)
    if problems or plan is None:
        raise RunPlanError(problems)
    check(plan)
    return plan


def render(plan: RunPlan) -> str:
    """The plan as a document that `parse` reads back to an equal plan."""
    return json.dumps({"schema": SCHEMA, **dataclasses.asdict(plan)}, indent=1) + "\n"


def check(plan: RunPlan) -> None:
    """Validate a plan for all targets. Raises RunPlanError with every problem."""
    problems: list[str] = []
    read(RunPlan, vars(plan), problems)
    problems += [*_command_problems(plan), *_mount_problems(plan)]
    for name in plan.env:
        if not re.fullmatch(_ENV, name):
            problems.append(f"env.{name}: not a name of an environment variable")
        elif name in _RESERVED or name.startswith("PET_"):
            problems.append(f"env.{name}: set by the launcher for every node; leave it out")
    if problems:
        raise RunPlanError(problems)


def _command_problems(plan: RunPlan) -> list[str]:
    if not plan.command:
        return ["command: is empty; must name a program"]
    script = plan.command[0] == "-m" or plan.command[0].endswith(".py")
    if plan.command_per == PER_RANK and not script:
        rule = "torchrun starts a script (train.py) or a module (-m package); else set command_per to node"
        return [f"command[0]: got {plan.command[0]!r}; {rule}"]
    return []


def _mount_problems(plan: RunPlan) -> list[str]:
    problems = []
    for key in ("name", "path"):
        seen: set[str] = set()
        for index, mount in enumerate(plan.mounts):
            value = getattr(mount, key)
            if value in seen:
                problems.append(f"mounts[{index}].{key}: {value!r} is taken by another mount")
            seen.add(value)
    for index, mount in enumerate(plan.mounts):
        if not mount.path.startswith("/"):
            problems.append(f"mounts[{index}].path: got {mount.path!r}; must begin with /")
        kinds = [key for key in _CONTENTS if getattr(mount, key) is not None]
        if len(kinds) > 1:
            problems.append(f"mounts[{index}]: {' and '.join(kinds)} exclude each other")
    return problems
