"""The run plan: one distributed run, wherever it will be started (pure).

A run is `nodes` machines of one kind, one container each, all of them with the same command.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "trainstack.run-plan/2"
PER_RANK, PER_NODE = "rank", "node"


class RunPlanError(ValueError):
    """A run plan that cannot be rendered; `problems` lists every fault found, not the first."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A folder in every container: a claim, a ConfigMap, or (with neither) space that ends with the pod."""

    name: str
    path: str
    claim: str | None = None
    config_map: str | None = None
    sub_path: str | None = None
    read_only: bool = False
    memory_gib: int | None = None
    """Kept in memory, at most this many GiB; only without a claim or ConfigMap. Null: on the node's disk."""


@dataclass(frozen=True, kw_only=True)
class SageMaker:
    """What Amazon SageMaker needs besides."""

    role_arn: str
    output_uri: str
    """`s3://...`, where the service puts /opt/ml/model."""
    checkpoint_uri: str | None = None
    """`s3://...` that /opt/ml/checkpoints is kept in step with."""
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    volume_gib: int = 200
    training_plan_arn: str | None = None


@dataclass(frozen=True, kw_only=True)
class Vertex:
    """What Vertex AI needs besides."""

    accelerator_type: str | None = None
    """As the API spells it, such as `NVIDIA_H100_80GB`; null for a machine without."""
    service_account: str | None = None
    network: str | None = None
    """`projects/NUMBER/global/networks/NAME`."""
    output_uri: str | None = None
    """`gs://...`."""
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

    name: str
    image: str
    """By digest: a tag may be another image on the next node."""
    command: tuple[str, ...]
    """What every rank runs (`train.py ...` or `-m package ...`, under torchrun), or what every node runs."""
    command_per: str = PER_RANK
    """`rank`: torchrun starts the command. `node`: it runs once per node and starts its own ranks."""
    nodes: int
    ranks_per_node: int | None = None
    """Null: one per GPU, or one on a node without."""
    gpus_per_node: int = 0
    devices: Mapping[str, str] = field(default_factory=dict)
    """What else of a node its pod takes, as Kubernetes counts it, such as `vpc.amazonaws.com/efa: "4"`."""
    device_claims: Mapping[str, str] = field(default_factory=dict)
    """Devices by claim: a name in the pod, and the ResourceClaimTemplate that gives them out."""
    cpu: int
    memory_gib: int
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    root_folder: str | None = None
    """A folder that root makes for all to write to before a node starts; a new file system is root's."""
    work_root: str | None = None
    """Every run finds its own folder below this one, by the run's name, in WORK_DIR."""
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
    master_port: int = 29500
    ports: Mapping[str, int] = field(default_factory=dict)
    """Further ports on which nodes talk to each other, by name."""
    timeout_s: int
    startup_timeout_s: int = 1200
    """From admission to the first step: a new node boots and pulls the image."""
    grace_s: int = 60
    max_restarts: int = 0
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


_NAME = r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?"
_ENV = r"[A-Za-z_][A-Za-z0-9_]*"
# Whoever starts the run sets these, differently on every node.
_RESERVED = {"NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE", "WORK_DIR"}
_NESTED: Mapping[str, type[SageMaker] | type[Vertex] | type[Slurm]] = {
    "sagemaker": SageMaker,
    "vertex": Vertex,
    "slurm": Slurm,
}


def parse(text: str) -> RunPlan:
    """Read a run plan document; RunPlanError lists every problem as `path: got value; rule`."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise RunPlanError([f"run plan: not readable as JSON ({error})"]) from error
    if not isinstance(document, dict):
        raise RunPlanError([f"run plan: got a {type(document).__name__}; must be an object"])
    problems: list[str] = []
    if document.pop("schema", None) != SCHEMA:
        problems.append(f'schema: must be "{SCHEMA}"')
    values = dict(document)
    for key, kind in _NESTED.items():
        if isinstance(values.get(key), dict):
            values[key] = _made(kind, values[key], f"{key}.", problems)
    mounts = values.get("mounts")
    if isinstance(mounts, list):
        values["mounts"] = tuple(
            _made(Mount, item, f"mounts[{index}].", problems) for index, item in enumerate(mounts)
        )
    plan = _made(RunPlan, values, "", problems)
    if problems or not isinstance(plan, RunPlan):
        raise RunPlanError(problems)
    check(plan)
    return plan


def render(plan: RunPlan) -> str:
    """The plan as a document that `parse` reads back to an equal plan."""
    return json.dumps({"schema": SCHEMA, **dataclasses.asdict(plan)}, indent=1) + "\n"


def check(plan: RunPlan) -> None:
    """Refuse what no place could run. Raises RunPlanError with every problem."""
    problems = [*_own_problems(plan), *_command_problems(plan), *_mount_problems(plan)]
    for name in plan.env:
        if not re.fullmatch(_ENV, name):
            problems.append(f"env.{name}: not a name of an environment variable")
        elif name in _RESERVED or name.startswith("PET_"):
            problems.append(f"env.{name}: set by the launcher for every node; leave it out")
    if problems:
        raise RunPlanError(problems)


def _own_problems(plan: RunPlan) -> list[str]:
    least = {"nodes": 1, "cpu": 1, "memory_gib": 1, "gpus_per_node": 0, "timeout_s": 1}
    least |= {"startup_timeout_s": 0, "grace_s": 0, "max_restarts": 0, "ranks_per_node": 1}
    problems = [
        f"{key}: got {getattr(plan, key)}; must be at least {low}"
        for key, low in least.items()
        if getattr(plan, key) is not None and getattr(plan, key) < low
    ]
    if not re.fullmatch(_NAME, plan.name):
        rule = "must be at most 40 of a-z, 0-9 and -, begin with a letter and end with no -"
        problems.append(f"name: got {plan.name!r}; {rule}")
    if "@sha256:" not in plan.image:
        problems.append(f"image: got {plan.image!r}; must be named by digest, NAME@sha256:DIGEST")
    if not 0 < plan.master_port < 65536:
        problems.append(f"master_port: got {plan.master_port}; must be 1 .. 65535")
    return problems


def _command_problems(plan: RunPlan) -> list[str]:
    if plan.command_per not in (PER_RANK, PER_NODE):
        return [f"command_per: got {plan.command_per!r}; must be rank or node"]
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
        kinds = [key for key in ("claim", "config_map", "memory_gib") if getattr(mount, key) is not None]
        if len(kinds) > 1:
            problems.append(f"mounts[{index}]: {' and '.join(kinds)} exclude each other")
    return problems


def _made(kind: type[Any], document: object, prefix: str, problems: list[str]) -> Any:
    """An instance of `kind` from an object of its fields; adds what is wrong to `problems` and gives None."""
    if not isinstance(document, dict):
        problems.append(f"{prefix.rstrip('.')}: got {json.dumps(document)}; must be an object")
        return None
    fields = {item.name: item for item in dataclasses.fields(kind)}
    found = [
        f"{prefix}{key}: unknown key; known: {', '.join(fields)}" for key in document if key not in fields
    ]
    values: dict[str, Any] = {}
    for name, item in fields.items():
        if name in document:
            value = document[name]
            value = tuple(value) if isinstance(value, list) else value
            if not _fits(str(item.type), value):
                shown = json.dumps(document[name], default=str)
                found.append(f"{prefix}{name}: got {shown}; must be {_said(item.type)}")
            values[name] = value
        elif item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
            found.append(f"{prefix}{name}: missing; must be {_said(item.type)}")
    problems += found
    return None if found else kind(**values)


_TEXTS = "tuple[str, ...]"


def _fits(form: str, value: object) -> bool:
    form = form.removeprefix("<class '").removesuffix("'>")
    if value is None:
        return form.endswith("| None")
    form = form.removesuffix(" | None")
    if form == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    if form in ("str", "bool"):
        return isinstance(value, str if form == "str" else bool)
    if form == _TEXTS:
        return isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    if "Mapping" in form:
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return dataclasses.is_dataclass(value) or isinstance(value, tuple)


def _said(form: object) -> str:
    words = {"int": "a whole number", "str": "a text", "bool": "true or false", _TEXTS: "a list of texts"}
    text = str(form).removeprefix("<class '").removesuffix("'>")
    base = text.removesuffix(" | None")
    said = words.get(base, "an object of texts" if "Mapping" in base else "an object")
    return said + (" or null" if text != base else "")
