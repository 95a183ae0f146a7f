"""Times `pulumi preview` of the medium stack with no policy pack, an empty one and ours, in turns.

    .venv/bin/python benchmarks/policy_pack.py [rounds]

The stack is dev-aws in a rehearsal of its own, of which nothing exists yet: every resource is asked about.
The empty pack answers every question with nothing: what it costs is the engine's work for any pack. One round
warms up and is not counted; the order turns from round to round. Seconds of wall time, and of processor time
of the engine, the program and the pack, without the emulated cloud, which runs on. Of the pack also by
itself: what it has spent when it is seen last, at most 20 ms before its end.

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
from collections.abc import Callable
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
PACKS = {"empty": ROOT / "benchmarks" / "compared" / "empty_pack", "ours": ROOT / "policies"}


class Spent(NamedTuple):
    """Seconds of one preview."""

    wall: float
    processor: float
    pack: float


def preview(workspace: Workspace, pack: Path | None, advisory: Path) -> Spent:
    """What one preview takes that succeeds."""
    options = ("--policy-pack", str(pack), "--policy-pack-config", str(advisory)) if pack else ()
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
        alone = of_pack(running, pack) if pack else 0.0
        running.wait()
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        output.seek(0)
        said = output.read()
    if running.returncode or (pack is PACKS["ours"]) != ("trainstack@v" in said):
        sys.exit(f"{' '.join(command)} failed:\n{said}")
    return Spent(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, alone)


def of_pack(running: subprocess.Popen[bytes], folder: Path) -> float:
    """Processor seconds of the pack's process below an engine, which is waited for."""
    pack, seconds = None, 0.0
    while running.poll() is None:
        try:
            if pack is None:
                found = psutil.Process(running.pid).children(recursive=True)
                pack = next((one for one in found if str(folder) in one.cmdline()), None)
            else:
                spent = pack.cpu_times()
                seconds = spent.user + spent.system
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.1 if pack is None else 0.02)
    return seconds


def show(what: str, found: list[dict[str, Spent]], read: Callable[[Spent], float]) -> None:
    """Medians of each, and what the packs added round by round."""
    for name in ("none", *PACKS):
        values = [read(one[name]) for one in found]
        print(f"{what}, {name}: {statistics.median(values):.2f} s ({min(values):.2f} .. {max(values):.2f})")
    for more, less in (("empty", "none"), ("ours", "empty"), ("ours", "none")):
        added = [100 * (read(one[more]) / read(one[less]) - 1) for one in found]
        spread = f"{min(added):+.1f} .. {max(added):+.1f}"
        print(f"{what}, {more} over {less}: {statistics.median(added):+.1f} % ({spread})")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as folder:
        cache = ROOT / ".trainstack" / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        Path(folder, "cache").symlink_to(cache)
        # Whether the stack keeps the rules is of no matter here.
        advisory = Path(folder, "advisory.json")
        advisory.write_text(json.dumps({"all": "advisory"}))
        rehearsal = Rehearsal(Path(folder, "rehearsal"))
        try:
            workspace = of_checkout(read(ROOT), STACK, rehearsal, require().path)
            found = []
            packs: list[tuple[str, Path | None]] = [("none", None), *PACKS.items()]
            for number in range(rounds + 1):
                order = packs[number % 3 :] + packs[: number % 3]
                found.append({name: preview(workspace, pack, advisory) for name, pack in order})
        finally:
            rehearsal.stop()
    show("wall time", found[1:], lambda one: one.wall)
    show("processor time", found[1:], lambda one: one.processor)
    for name in PACKS:
        alone = [one[name].pack for one in found[1:]]
        spread = f"{min(alone):.2f} .. {max(alone):.2f}"
        print(f"processor time, {name} by itself: {statistics.median(alone):.2f} s ({spread})")
    print(f"load of the last 5 minutes: {os.getloadavg()[1]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
