"""The validation over NCCL with one GPU: two nodes of one rank, each in a network namespace of its own.

    python benchmarks/nccl_namespaces.py [fabric] [phase ...]

NCCL refuses one device for two ranks of a host, and distinguishes hosts by their names, so each node has
a host name of its own. Between them is NCCL's socket transport over a veth pair: `tcp` shows that everything
except the fabric works on a GPU, `efa` that a fallback to sockets closes the gate. The ranks share the GPU,
and their speed means nothing. Needs root, `ip`, `unshare` and a CUDA device; of packages only torch.
"""

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from smoke_training import plan as plans
from smoke_training.fabric import Fabric
from smoke_training.phases import QUICK

REPOSITORY = Path(__file__).resolve().parents[1]
LINK = "eth7"  # the same name at both ends: all nodes must have the same environment
IN_HOST = ["unshare", "--uts", "sh", "-c", 'hostname "$1"; shift; exec "$@"', "sh"]
NODES = range(2)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def space(node: int) -> str:
    return f"nccl-{os.getpid()}-{node}"


def address(node: int) -> str:
    return f"10.9.0.{node + 1}"


@contextlib.contextmanager
def namespaces() -> Iterator[None]:
    with contextlib.ExitStack() as undo:
        for node in NODES:
            ip("netns", "add", space(node))
            undo.callback(ip, "netns", "del", space(node))
        ip("link", "add", LINK, "netns", space(0), "type", "veth", "peer", "name", LINK, "netns", space(1))
        for node in NODES:
            ip("-n", space(node), "addr", "add", f"{address(node)}/24", "dev", LINK)
            for link in ("lo", LINK):
                ip("-n", space(node), "link", "set", link, "up")
        yield


def plan(fabric: str, phases: tuple[str, ...]) -> plans.Plan:
    """Limits that two ranks on one GPU can keep, and no reason to stop early."""
    return dataclasses.replace(
        plans.local_plan(1, QUICK, phases or None),
        nodes=len(NODES),
        gpus_per_node=1,
        fabric=Fabric(fabric),
        min_scaling_efficiency=0.02,
        max_straggler_slowdown=3.0,
        hang_timeout_s=60.0,
        accept=("PASS", "INCONCLUSIVE"),  # nothing says what NCCL should reach over this pair
    )


def start(node: int, document: Path, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir()
    environment = {
        "GLOO_SOCKET_IFNAME": LINK,  # for checkpoints; the host name, which gloo would ask, has no address
        "MASTER_ADDR": address(0),
        "NCCL_SOCKET_IFNAME": LINK,
        "NODE_RANK": str(node),
        "PYTHONPATH": str(REPOSITORY),
        "WORK_DIR": str(folder),
    }
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(
            [
                *("ip", "netns", "exec", space(node), *IN_HOST, f"node-{node}"),
                *(sys.executable, "-m", "smoke_training", "node", "--plan", str(document)),
            ],
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def main() -> int:
    fabric, *phases = sys.argv[1:] or ["tcp"]
    with tempfile.TemporaryDirectory() as scratch, namespaces():
        document = Path(scratch) / "plan.json"
        document.write_text(plans.render(plan(fabric, tuple(phases))))
        folders = [Path(scratch) / f"node-{node}" for node in NODES]
        nodes = [start(node, document, folder) for node, folder in zip(NODES, folders, strict=True)]
        try:
            return max(node.wait() for node in nodes)
        finally:
            for node, folder in zip(nodes, folders, strict=True):
                node.terminate()
                node.wait()
                print((folder / "output").read_text(errors="replace"))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nodes and namespaces go
    sys.exit(main())
