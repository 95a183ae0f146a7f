"""Times `pulumi preview` of the medium stack with the policy pack and without, in turns.

    .venv/bin/python benchmarks/policy_pack.py [pairs]

The stack is dev-aws in a rehearsal of its own, of which nothing exists yet: every resource is asked about.
One pair warms up and is not counted; which of a pair comes first alternates. Seconds of wall time, and of
processor time of the engine, the program and the pack, without the emulated cloud, which runs on.
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

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from infra.engine.install import require  # noqa: E402
from rehearsal.client import Rehearsal  # noqa: E402
from rehearsal.projects.project import read  # noqa: E402
from rehearsal.projects.workspace import Workspace, of_checkout  # noqa: E402

STACK = "dev-aws"


def preview(workspace: Workspace, *options: str) -> tuple[float, float]:
    """(wall seconds, processor seconds) of one preview that succeeds."""
    command = [require().path, "preview", "--non-interactive", "--stack", STACK, *options]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command,
        cwd=workspace.folder,
        env={**os.environ, **workspace.variables},
        check=False,
        capture_output=True,
        text=True,
    )
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or ("--policy-pack" in options) != ("trainstack@v" in done.stdout):
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, spent


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
        pack = ("--policy-pack", str(ROOT / "policies"), "--policy-pack-config", str(advisory))
        rehearsal = Rehearsal(Path(folder, "rehearsal"))
        try:
            workspace = of_checkout(read(ROOT), STACK, rehearsal, require().path)
            found = []
            for number in range(pairs + 1):
                order = [(), pack] if number % 2 else [pack, ()]
                found.append({bool(options): preview(workspace, *options) for options in order})
        finally:
            rehearsal.stop()
    for index, what in enumerate(("wall time", "processor time")):
        told(what, *([one[judged][index] for one in found[1:]] for judged in (False, True)))


if __name__ == "__main__":
    main()
