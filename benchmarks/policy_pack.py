"""Times `pulumi preview` of the medium stack with the policy pack and without, in turns.

    .venv/bin/python benchmarks/policy_pack.py [pairs]

The stack is dev-aws in a rehearsal of its own, of which nothing exists yet: every resource is asked about.
One pair warms up and is not counted; which of a pair comes first alternates. Seconds of wall time, and of
processor time of the engine, the program and the pack, without the emulated cloud, which runs on. Of the pack
also by itself: what it has spent when it is seen last, at most 20 ms before its end.

Processor time can be compared on a busy machine, wall time only on a quiet one: the load is printed too.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from infra.engine.install import require  # noqa: E402
from rehearsal.client import Rehearsal  # noqa: E402
from rehearsal.projects.project import read  # noqa: E402
from rehearsal.projects.workspace import Workspace, of_checkout  # noqa: E402

STACK = "dev-aws"
PACK = ROOT / "policies"


class Spent(NamedTuple):
    """Seconds of one preview."""

    wall: float
    processor: float
    pack: float


def preview(workspace: Workspace, *options: str) -> Spent:
    """What one preview takes that succeeds."""
    command = [require().path, "preview", "--non-interactive", "--stack", STACK, *options]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile("w+") as output:
        running = subprocess.Popen(
            command,
            cwd=workspace.folder,
            env={**os.environ, **workspace.variables},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        pack = of_pack(running) if options else 0.0
        running.wait()
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        output.seek(0)
        said = output.read()
    if running.returncode or bool(options) != ("trainstack@v" in said):
        sys.exit(f"{' '.join(command)} failed:\n{said}")
    return Spent(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, pack)


def of_pack(running: subprocess.Popen[bytes]) -> float:
    """Processor seconds of the pack's process below an engine, which is waited for."""
    pack, seconds = None, 0.0
    while running.poll() is None:
        try:
            if pack is None:
                found = psutil.Process(running.pid).children(recursive=True)
                pack = next((one for one in found if str(PACK) in one.cmdline()), None)
            else:
                spent = pack.cpu_times()
                seconds = spent.user + spent.system
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.1 if pack is None else 0.02)
    return seconds


def told(what: str, plain: list[float], judged: list[float]) -> None:
    added = [100 * (with_pack / without - 1) for without, with_pack in zip(plain, judged, strict=True)]
    for name, values in (("without", plain), ("with the pack", judged)):
        print(f"{what}, {name}: {statistics.median(values):.2f} s ({min(values):.2f} .. {max(values):.2f})")
    spread = f"{min(added):+.1f} .. {max(added):+.1f}"
    print(f"{what}, added pair by pair: {statistics.median(added):+.1f} % ({spread})")


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as folder:
        cache = ROOT / ".trainstack" / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        Path(folder, "cache").symlink_to(cache)
        # Whether the stack keeps the rules is of no matter here.
        advisory = Path(folder, "advisory.json")
        advisory.write_text(json.dumps({"all": "advisory"}))
        pack = ("--policy-pack", str(PACK), "--policy-pack-config", str(advisory))
        rehearsal = Rehearsal(Path(folder, "rehearsal"))
        try:
            workspace = of_checkout(read(ROOT), STACK, rehearsal, require().path)
            found = []
            for number in range(pairs + 1):
                order = [(), pack] if number % 2 else [pack, ()]
                found.append({bool(options): preview(workspace, *options) for options in order})
        finally:
            rehearsal.stop()
    plain, judged = ([one[is_judged] for one in found[1:]] for is_judged in (False, True))
    told("wall time", [one.wall for one in plain], [one.wall for one in judged])
    told("processor time", [one.processor for one in plain], [one.processor for one in judged])
    packs = [one.pack for one in judged]
    spread = f"{min(packs):.2f} .. {max(packs):.2f}"
    print(f"processor time, the pack itself: {statistics.median(packs):.2f} s ({spread})")
    print(f"load of the last 5 minutes: {os.getloadavg()[1]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
