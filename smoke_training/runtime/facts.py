"""Facts of one launcher before any rank starts: node, devices, code, and its report to node 0.

Values of variables leave the node only as digests.
"""

import functools
import hashlib
import os
import platform
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import smoke_training
from smoke_training import plan as plans
from smoke_training.evidence.world import LauncherPreflight, Nic, NodeFacts
from smoke_training.plan import Plan
from smoke_training.reader import DocumentError
from smoke_training.runtime import counters, host
from smoke_training.runtime.control.session import RunEndedError

STEERING = ("NCCL_", "GLOO_", "FI_", "OMP_", "TORCH_", "UCX_", "OFI_")
CPU_RANKS_AT_MOST = 4


@dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """Node settings from the container: index, rendezvous, folders."""

    index: int
    master_addr: str
    master_port: int
    work_dir: Path
    result: Path
    termination: Path | None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], nodes: int) -> "NodeSettings":
        """Read NODE_RANK, MASTER_ADDR, MASTER_PORT, WORK_DIR; DocumentError lists every problem."""
        needed = ("NODE_RANK", "MASTER_ADDR", "WORK_DIR")
        problems = [f"{name}: missing from the environment" for name in needed if not environment.get(name)]
        index, port = environment.get("NODE_RANK") or "0", environment.get("MASTER_PORT") or "29500"
        if not (index.isdigit() and int(index) < nodes):
            problems.append(f"NODE_RANK: got {index!r}; must be 0 .. {nodes - 1}, the plan has {nodes} nodes")
        if not (port.isdigit() and 0 < int(port) < 65536):
            problems.append(f"MASTER_PORT: got {port!r}; must be 1 .. 65535")
        if problems:
            raise DocumentError(problems)
        work_dir = Path(environment["WORK_DIR"])
        message = environment.get("TERMINATION_MESSAGE_PATH")
        return cls(
            index=int(index),
            master_addr=environment["MASTER_ADDR"],
            master_port=int(port),
            work_dir=work_dir,
            result=work_dir / "result.json",
            termination=Path(message) if message else None,
        )

    @property
    def scratch(self) -> Path:
        """The node's own folder, not shared even if the work folder is."""
        return self.work_dir / f"node-{self.index}"


def address(name: str, deadline: float) -> str:
    """Return the rendezvous address, waiting until the name resolves."""
    while (found := host.resolve(name)) is None:
        if time.monotonic() > deadline:
            raise RunEndedError(f"MASTER_ADDR {name} has no address")
        time.sleep(0.5)
    return found


def has_address(first: str, node: int) -> bool:
    """Report whether a node's pod has an address, by the name of node 0's pod in an indexed Job.

    A pod gets its address before its image is pulled.
    """
    name, found = re.subn(r"^([^.]*)-0(?=\.|$)", rf"\g<1>-{node}", first)
    return bool(found) and host.resolve(name) is not None


def preflight(plan: Plan, shared_machine: bool) -> LauncherPreflight:
    """Decide device and ranks. `SMOKE_DEVICE` is auto (default), cpu or cuda.

    Without a number in the plan: one rank per GPU, else one per usable CPU, at most four, shared among the
    nodes when all of them run on this machine.
    """
    requested = os.environ.get("SMOKE_DEVICE", "auto")
    if requested not in ("auto", "cpu", "cuda"):
        raise RunEndedError(f'SMOKE_DEVICE: got "{requested}"; must be auto, cpu or cuda')
    found = 0 if requested == "cpu" else len(list(Path("/dev").glob("nvidia[0-9]*")))
    device = "cuda" if requested == "cuda" or found else "cpu"
    cpus = max(1, host.usable_cpus() // (plan.nodes if shared_machine else 1))
    ranks = plan.ranks_per_node or (found if device == "cuda" else min(cpus, CPU_RANKS_AT_MOST))
    return LauncherPreflight(
        device=device, devices_found=found, device_forced=requested == "cpu", ranks=max(ranks, 1)
    )


def of_node(index: int, plan: Plan, found: LauncherPreflight) -> NodeFacts:
    """Return the current facts of this node."""
    try:
        torch: str | None = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = None
    return NodeFacts(
        node=index,
        host=host.name(),
        ranks=found.ranks,
        device=found.device,
        device_forced=found.device_forced,
        gpus=found.devices_found,
        driver=host.nvidia_driver(),
        cpus=host.usable_cpus(),
        kernel=platform.release(),
        python=platform.python_version(),
        torch=torch,
        code_sha256=code_digest(),
        plan_sha256=digest_of(plan),
        plan_nodes=plan.nodes,
        plan_ranks_per_node=plan.ranks_per_node,
        environment={
            name: hashlib.sha256(value.encode()).hexdigest()[:12]
            for name, value in sorted(os.environ.items())
            if name.startswith(STEERING)
        },
        nics=tuple(_nics()),
        rdma=tuple(sorted(path.name for path in counters.CLASS_INFINIBAND.glob("*"))),
        lockable_bytes=host.lockable_bytes(),
    )


def _nics() -> Iterator[Nic]:
    for name, found in sorted(counters.interfaces().items()):
        if name != "lo":
            # The kernel reports the operational state up to a second after the carrier's.
            late = found.operstate == "down" and found.carrier == 1
            rate = None if found.speed_mbit_s is None else found.speed_mbit_s / 1000
            yield Nic(name=name, state="up" if late else found.operstate, gbit_s=rate)


def digest_of(plan: Plan) -> str:
    """Return the SHA-256 of the plan's canonical form, independent of its spelling."""
    return hashlib.sha256(plans.render(plan).encode()).hexdigest()


def code_location() -> Path:
    """Return the path entry this package was imported from: a zip or a folder."""
    return Path(next(iter(smoke_training.__path__))).parent.resolve()


@functools.cache
def code_digest() -> str:
    """Return the SHA-256 of the zip, or of all modules with their names when run from a folder."""
    place = code_location()
    if place.is_file():
        return hashlib.sha256(place.read_bytes()).hexdigest()
    total = hashlib.sha256()
    for path in sorted((place / "smoke_training").rglob("*.py")):
        total.update(f"{path.relative_to(place)}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()
