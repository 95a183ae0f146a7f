"""A cluster on one machine: nodes as namespaces on shaped wires, started as a cluster would start them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.faults import network, system
from tests.faults.injector import Injector, InjectorError
from tests.faults.network import MANAGEMENT, Place, Wires
from tests.faults.outcome import Outcome, json_lines, read_json, text
from tests.faults.system import Group, LabError
from tests.smoke_training.jobs import ranks_of

REPOSITORY = Path(__file__).resolve().parents[2]
MASTER_PORT = 29500
SHARES = 32_768  # CPU weight of a laboratory; a process outside has 1,024, so that others go on, slowly
ENDING_S = 45.0  # what a launcher may take beyond its plan's limit before the lab calls it hung
# Every node sees its own interfaces in /sys/class/net, as a pod does, and still finds its control groups.
FURNISH = """
set -e
hostname "$1"
mkdir -p "$2/sys"
mount -t sysfs sysfs "$2/sys"
mount --rbind /sys/fs/cgroup "$2/sys/fs/cgroup"
mount --rbind "$2/sys" /sys
umount --lazy "$2/sys"
mount --bind "$3" /etc/hosts
ip link set lo up
echo ready
exec sleep infinity
"""


@dataclass(frozen=True, kw_only=True)
class Node:
    """One machine of the laboratory."""

    index: int
    host: str
    place: Place
    group: Group
    work_dir: Path

    def command(self, *argv: str, check: bool = True) -> str:
        """Run a command on this node, inside its namespaces and control groups."""
        return system.command(*self.argv(*argv), check=check)

    def argv(self, *argv: str) -> list[str]:
        """Command words that run on this node."""
        groups = [self.group.folder(controller) for controller in system.CONTROLLERS]
        return [*system.entering(groups), *self.place.inside(*argv)]


@dataclass(kw_only=True)
class Run:
    """One run of the product in the laboratory while it lasts."""

    lab: "Lab"
    began: float
    launchers: dict[int, subprocess.Popen[bytes]]  # by node; a node may be missing

    def elapsed(self) -> float:
        """Seconds since the launchers were started."""
        return time.monotonic() - self.began

    def output(self, node: int) -> str:
        """What a node's launcher printed so far."""
        return self.lab.output_of(node).read_text(errors="replace")

    def events(self, node: int = 0) -> list[dict[str, Any]]:
        """The launcher's machine-readable lines so far."""
        return json_lines(self.output(node))

    def ranks(self) -> dict[int, int]:
        """Pid of every rank that lives now, by rank."""
        beats = ranks_of([pid for node in self.lab.nodes for pid in node.group.pids()])
        return {rank: beat.pid for rank, beat in beats.items()}


@dataclass
class Lab:
    """Nodes that stand as long as the `with` block; all that they are made of goes when it ends."""

    size: int = 2
    wires: Wires = field(default_factory=Wires)

    def __enter__(self) -> Self:
        reason = system.missing()
        if reason:
            raise LabError(reason)
        system.sweep()
        self.name = system.unused_name()
        self.home = system.HOMES / self.name
        self._holders: list[subprocess.Popen[bytes]] = []
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process of the laboratory and remove what it was made of."""
        Group(self.name).kill()
        for holder in self._holders:
            holder.kill()
        for holder in self._holders:
            holder.wait()
            if holder.stdout is not None:
                holder.stdout.close()
        system.demolish(self.name)

    def _build(self) -> None:
        self.home.mkdir()
        # What is mounted below this folder later on, such as a node's disk, is seen by the nodes as well.
        system.command("mount", "--bind", str(self.home), str(self.home))
        system.command("mount", "--make-shared", str(self.home))
        hosts = [f"{network.address(self.wires, MANAGEMENT, i)} {self.host(i)}" for i in range(self.size)]
        (self.home / "hosts").write_text("\n".join(["127.0.0.1 localhost", *hosts]) + "\n")
        whole = Group(self.name)
        whole.make()
        # A cluster has its machines to itself: what else runs here gets little more than what it leaves.
        # Who is to disturb it (`neighbour.py`) does so from within.
        whole.write("cpu", "cpu.shares", str(SHARES))
        self.switch = self._hold("switch")
        self.nodes = [self._node(index) for index in range(self.size)]
        network.connect(self.switch, [node.place for node in self.nodes], self.wires)

    def _node(self, index: int) -> Node:
        group = Group(f"{self.name}/n{index}")
        group.make()
        place = self._hold(self.host(index))
        work_dir = self.home / f"node-{index}"
        return Node(index=index, host=self.host(index), place=place, group=group, work_dir=work_dir)

    def _hold(self, name: str) -> Place:
        """A process that keeps a set of namespaces alive, and that the kernel ends with this one."""
        scratch = self.home / f"hold-{name}"
        scratch.mkdir()
        words = [*system.MORTAL, "unshare", "--net", "--uts", "--mount", "--propagation", "slave"]
        holder = subprocess.Popen(
            [*words, "sh", "-c", FURNISH, "sh", name, str(scratch), str(self.home / "hosts")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        self._holders.append(holder)
        assert holder.stdout is not None
        if holder.stdout.readline() != b"ready\n":
            raise LabError(f"the namespaces of {name} could not be made (status {holder.wait(10)})")
        return Place(holder.pid)

    def host(self, index: int) -> str:
        """Host name of a node."""
        return f"smoke-{index}"

    def output_of(self, node: int) -> Path:
        """File with what a node's launcher printed."""
        return self.home / f"output-{node}"

    def run(
        self,
        document: dict[str, Any],
        inject: Sequence[Injector] = (),
        watch: Callable[[Run], None] | None = None,
    ) -> Outcome:
        """Run one plan on all nodes under the given faults, and read what it left.

        LabError if a launcher does not end or leaves a process behind; InjectorError if a fault did not bite.
        """
        with ExitStack() as undo:
            for injector in inject:
                undo.callback(injector.remove, self)
                injector.install(self)
            run = Run(lab=self, began=time.monotonic(), launchers={})
            undo.callback(self._end, run)
            self._start(run, document, inject)
            deadline = run.began + float(document["timeout_s"]) + ENDING_S
            while any(launcher.poll() is None for launcher in run.launchers.values()):
                if time.monotonic() > deadline:
                    raise LabError(f"a launcher hangs:\n{self._outputs(run)}")
                for injector in inject:
                    injector.watch(run)
                if watch is not None:
                    watch(run)
                time.sleep(0.01)
            wall = run.elapsed()
            self._refuse_leftovers()
            try:
                proofs = [injector.prove(run) for injector in inject]
            except InjectorError as error:
                raise InjectorError(f"{error}\n{self._outputs(run)}") from error
            return self._outcome(run, wall, proofs)

    def _start(self, run: Run, document: dict[str, Any], inject: Sequence[Injector]) -> None:
        for node in self.nodes:
            plan: dict[str, Any] | None = json.loads(json.dumps(document))
            environment = self.environment(node)
            for injector in inject:
                plan = None if plan is None else injector.plan(self, node.index, plan)
                for name, value in injector.environment(self, node.index).items():
                    environment.pop(name, None)
                    environment |= {} if value is None else {name: value}
            node.work_dir.mkdir(exist_ok=True)
            for stale in ("result.json", "termination"):
                (node.work_dir / stale).unlink(missing_ok=True)
            if plan is None:
                continue
            path = self.home / f"plan-{node.index}.json"
            path.write_text(json.dumps(plan))
            command = [sys.executable, "-m", "smoke_training", "node", "--plan", str(path)]
            with self.output_of(node.index).open("wb") as output:
                run.launchers[node.index] = subprocess.Popen(
                    [*system.MORTAL, *node.argv(*command)],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd="/",
                )

    def environment(self, node: Node) -> dict[str, str]:
        """The environment a node's container would have."""
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG", "TMPDIR") if key in os.environ}
        return kept | {
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONUNBUFFERED": "1",
            "NODE_RANK": str(node.index),
            "MASTER_ADDR": self.host(0),
            "MASTER_PORT": str(MASTER_PORT),
            "WORK_DIR": str(node.work_dir),
            "HOSTNAME": node.host,
            "TERMINATION_MESSAGE_PATH": str(node.work_dir / "termination"),
            "SMOKE_DEVICE": "cpu",
            # gloo sends each operation over one interface; the other rails are for what can use several.
            "GLOO_SOCKET_IFNAME": self.wires.rails[0],
        }

    def _end(self, run: Run) -> None:
        for launcher in run.launchers.values():
            launcher.kill()
            launcher.wait()
        for node in self.nodes:
            node.group.kill()

    def _refuse_leftovers(self) -> None:
        deadline = time.monotonic() + 2.0
        while left := [(node.index, pid) for node in self.nodes for pid in node.group.pids()]:
            if time.monotonic() > deadline:
                what = [f"node {index}: {pid} {_command_line(pid)}" for index, pid in left]
                raise LabError("the run left processes behind: " + "; ".join(what))
            time.sleep(0.02)

    def _outputs(self, run: Run) -> str:
        """What launchers and ranks said, for a reader who has to find out why."""
        texts = [f"--- node {index}\n{run.output(index)[-3000:]}" for index in run.launchers]
        for node in self.nodes:
            log = text(node.work_dir / f"node-{node.index}" / "torchrun.log")
            texts.append(f"--- ranks of node {node.index}\n{log[:3000]}")
        return "\n".join(texts)

    def _outcome(self, run: Run, wall: float, proofs: list[str]) -> Outcome:
        first = self.nodes[0].work_dir
        samples = sorted(first.glob("*samples.jsonl"))
        return Outcome(
            exit_codes={index: int(launcher.returncode) for index, launcher in run.launchers.items()},
            wall_s=wall,
            result=read_json(first / "result.json"),
            samples=json_lines(samples[0].read_text()) if samples else [],
            terminations={n.index: text(n.work_dir / "termination") for n in self.nodes},
            outputs={index: run.output(index) for index in run.launchers},
            logs={n.index: text(n.work_dir / f"node-{n.index}" / "torchrun.log") for n in self.nodes},
            proofs=proofs,
        )


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return "(gone)"
