"""The run plan: one distributed run, wherever it will be started (pure).

A run is `nodes` machines of one kind, one container each, all of them with the same command.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from smoke_training.reader import Count, DocumentError, Rule, Whole, parsed, read

SCHEMA = "trainstack.run-plan/3"
PER_RANK, PER_NODE = "rank", "node"
_NAME = r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?"

Name = Annotated[
    str,
    Rule(
        lambda value: re.fullmatch(_NAME, value) is not None,
        "must be at most 40 of a-z, 0-9 and -, begin with a letter and end with no -",
    ),
]
Image = Annotated[str, Rule(lambda value: "@sha256:" in value, "must be named by digest, NAME@sha256:DIGEST")]
Per = Annotated[str, Rule(lambda value: value in (PER_RANK, PER_NODE), "must be rank or node")]
Port = Annotated[int, Rule(lambda value: 0 < value < 65536, "must be 1 .. 65535")]


class RunPlanError(DocumentError):
    """A run plan that cannot be rendered."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A folder in every container: a claim, a ConfigMap, a Secret, or else space that ends with the pod."""

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
    """Kept in memory, at most this many GiB; only of such space. Null: on the node's disk."""
    host: str | None = None
    """The folder of the node itself, where a fabric's driver keeps what pods need."""


@dataclass(frozen=True, kw_only=True)
class Sidecar:
    """A container beside that of the run, in its network: it starts before it and is ended after it."""

    name: str
    image: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    capabilities: tuple[str, ...] = ()
    """What its root may do besides what containers may, such as `NET_ADMIN`."""
    mounts: tuple[Mount, ...] = ()
    """Folders; one with the name of a folder of the run is the same one."""
    ready_file: str | None = None
    """A file that it writes once it works; the run starts after that. Null: once it has started."""
    cpu: Count
    memory_gib: Count


def shared_memory(memory_gib: int) -> Mount:
    """What ranks of one node share, at most half of the node's `memory_gib`, as which it counts.

    The 64 MiB of containers are too few for their buffers.
    """
    return Mount(name="shared-memory", path="/dev/shm", memory_gib=max(1, memory_gib // 2))  # noqa: S108


@dataclass(frozen=True, kw_only=True)
class SageMaker:
    """What Amazon SageMaker needs besides."""

    role_arn: str
    output_uri: str
    """`s3://...`, where the service puts /opt/ml/model."""
    job_name: str | None = None
    """Name of the job, at most 63 letters, digits and dashes; null: the run's."""
    checkpoint_uri: str | None = None
    """`s3://...` that /opt/ml/checkpoints is kept in step with."""
    channels: Mapping[str, str] = field(default_factory=dict)
    """`s3://...` prefixes by channel, copied to /opt/ml/input/data/<channel> of every node at first."""
    code_channel: str | None = None
    """The channel with a code.tar.gz, which is unpacked to /opt/ml/code, where the command then runs."""
    kms_key: str | None = None
    """Key of what the service writes to `output_uri`; null: the bucket's own."""
    volume_kms_key: str | None = None
    """Key of the disk, of machines that have none of their own; null: the service's."""
    spot: bool = False
    max_wait_s: int | None = None
    """Of a spot run: seconds of waiting for machines and of running, together; null: none of waiting."""
    keep_alive_s: int | None = None
    """Seconds for which its machines wait for the next run like it, and are billed; null: they do not."""
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    volume_gib: int = 200
    training_plan_arn: str | None = None
    """Of a plan of SageMaker that reserves the machines, of the same type; null: none does."""


@dataclass(frozen=True, kw_only=True)
class Vertex:
    """What Vertex AI needs besides."""

    accelerator_type: str | None = None
    """As the API spells it, such as `NVIDIA_H100_80GB`; null for a machine without."""
    service_account: str | None = None
    network: str | None = None
    """`projects/NUMBER/global/networks/NAME`."""
    output_uri: str | None = None
    """`gs://...`, the base directory of which AIP_* tell."""
    job_name: str | None = None
    """Name of the job, at most 128 characters; null: the run's."""
    code_uri: str | None = None
    """`gs://...` folder that every node finds at /tmp/trainstack/code."""
    packed: bool = False
    """Whether it has a code.tar.gz, which is unpacked to /tmp/trainstack/run, where the command then runs."""
    folder_each: bool = False
    """Whether every job of this request has a WORK_DIR of its own, with the job's id at its end."""
    kms_key: str | None = None
    """Key of the job's disks; null: Google's."""
    spot: bool = False
    """Spare machines, which the cloud takes back; the service starts the job again, up to six times."""
    reservation: str | None = None
    """`projects/PROJECT/zones/ZONE/reservations/NAME` that the machines come from; null: any."""
    boot_disk_gb: int = 200


@dataclass(frozen=True, kw_only=True)
class Slurm:
    """What Slurm needs besides."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    image_file: str | None = None
    """Squash file of the image that every node has (`enroot import`), run by pyxis: enroot takes no digest.
    Null: the run uses what is installed on the nodes."""


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """One run. Memory in GiB, times in seconds, cores and devices per node."""

    name: Name
    image: Image
    """By digest: a tag may be another image on the next node."""
    command: tuple[str, ...]
    """What every rank runs (`train.py ...` or `-m package ...`, under torchrun), or what every node runs."""
    command_per: Per = PER_RANK
    """`rank`: torchrun starts the command. `node`: it runs once per node and starts its own ranks."""
    nodes: Count
    ranks_per_node: Count | None = None
    """Null: one per GPU, or one on a node without."""
    gpus_per_node: Whole = 0
    devices: Mapping[str, str] = field(default_factory=dict)
    """What else of a node its pod takes, as Kubernetes counts it, such as `vpc.amazonaws.com/efa: "4"`."""
    device_claims: Mapping[str, str] = field(default_factory=dict)
    """Devices by claim: a name in the pod, and the ResourceClaimTemplate that gives them out."""
    cpu: Count
    memory_gib: Count
    env: Mapping[str, str] = field(default_factory=dict)
    profile: str | None = None
    """A file of bash on every node that sets the variables of its fabric; what `env` says of NCCL goes
    before it."""
    mounts: tuple[Mount, ...] = ()
    sidecars: tuple[Sidecar, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of pods, such as the networks that they are in."""
    root_folder: str | None = None
    """A folder that root makes for all to write to before a node starts; a new file system is root's."""
    work_root: str | None = None
    """Every run finds its own folder below this one, by the run's name, in WORK_DIR."""
    checkpoint_policy: bool = False
    """Whether pods on Kubernetes read the checkpoint policy of their namespace, where it has one, and may say
    in an annotation of their own when they last wrote a checkpoint."""
    namespace: str | None = None
    service_account: str | None = None
    service: str | None = None
    """Headless Service by which nodes find each other; null: one of the run's own name."""
    queue: str | None = None
    """Kueue LocalQueue."""
    priority: str | None = None
    """Kueue WorkloadPriorityClass."""
    labels: Mapping[str, str] = field(default_factory=dict)
    node_labels: Mapping[str, str] = field(default_factory=dict)
    topology_level: str | None = None
    """Node label of the network layer to stay within if possible."""
    user_id: int | None = None
    """User and group of the processes; null: the image's."""
    read_only_root: bool = False
    """Whether the image itself cannot be written to; what is written goes to mounts then."""
    master_port: Port = 29500
    ports: Mapping[str, int] = field(default_factory=dict)
    """Further ports on which nodes talk to each other, by name."""
    timeout_s: Count
    startup_timeout_s: Whole = 1200
    """From admission to the first step: a new node boots and pulls the image."""
    grace_s: Whole = 60
    max_restarts: Whole = 0
    """How often all ranks start again, from the last checkpoint, after one of them broke."""
    instance_type: str | None = None
    """The cloud's machine type, such as `p5.48xlarge`; where the place buys machines itself."""
    sagemaker: SageMaker | None = None
    vertex: Vertex | None = None
    slurm: Slurm = Slurm()

    @property
    def ranks(self) -> int:
        """Ranks on one node."""
        return self.ranks_per_node or self.gpus_per_node or 1

    @property
    def deadline_s(self) -> int:
        """Start-up and run together."""
        return self.startup_timeout_s + self.timeout_s


# What a folder can be; one of them.
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
    """Refuse what no place could run. Raises RunPlanError with every problem."""
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
        return ["command: is empty; say what to run"]
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
