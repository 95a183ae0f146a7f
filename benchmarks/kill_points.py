"""Kills engine, program, provider and daemon at 100 seeded points and checks that nothing is lost or doubled.

    .venv/bin/python benchmarks/kill_points.py [points] [seed]

Each point is one operation (create or delete) before or after which one process gets SIGKILL. After every few
kills the run is finished: the graph must be that of an undisturbed run, the clouds must hold exactly what the
engine knows, and after `destroy` nothing. The tests run the same with fewer points.
"""

import collections
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rehearsal.client import Rehearsal  # noqa: E402
from tests.rehearsal.runs.kill_points import Stage, play  # noqa: E402


def main(points: int, seed: int) -> int:
    with tempfile.TemporaryDirectory(prefix="trainstack-kill-") as work:
        (Path(work) / "cache").symlink_to(ROOT / ".trainstack" / "cache")
        stage = Stage(Path(work), Rehearsal(Path(work) / "rehearsal"))
        start = time.perf_counter()
        try:
            stage.prepare()
            wrong = []
            for complaint in play(stage, points, seed):
                wrong.append(complaint)
                print(complaint, flush=True)
        finally:
            stage.rehearsal.stop()
        seconds = time.perf_counter() - start
    kinds = collections.Counter(f"{kill.operation} {kill.kind} {kill.victim}" for kill in stage.kills)
    figures = f"{len(stage.kills)} kills in {stage.runs} runs, {seconds:.0f} s, {len(wrong)} complaints"
    print(f"{figures}, seed {seed}")
    for kind, count in sorted(kinds.items()):
        print(f"  {kind:32} {count}")
    return 1 if wrong else 0


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(numbers + [100, 1][len(numbers) :])))
