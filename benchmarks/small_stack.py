"""Times the life of a rehearsed small-aws in this checkout and in an older one, in turns.

    .venv/bin/python benchmarks/small_stack.py OLDER_CHECKOUT [pairs]

Each life is `up` with its validation, an unchanged `up`, `run` of a script that ends at once, and `destroy`.
Both checkouts need a `.venv` and a set-up engine of their own, whose language host names the checkout. Ratios
are taken pair by pair, as other work on the machine affects both.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_STACK = ("-s", "small-aws", "--rehearse")
_RUN = ("--on", "l4", "--max-hours", "0.1", "--as", "ada", "--dataset", "none")


def life(checkout: Path, folder: str) -> dict[str, float]:
    """Seconds of each command. Raises RuntimeError when one fails."""
    commands = {
        "up": ("up", *_STACK, "--yes"),
        "unchanged up": ("up", *_STACK, "--yes"),
        "run": ("run", folder, *_RUN, *_STACK),
        "destroy": ("destroy", *_STACK, "--yes"),
    }
    return {name: _seconds(checkout, words) for name, words in commands.items()}


def _seconds(checkout: Path, words: tuple[str, ...]) -> float:
    start = time.monotonic()
    done = subprocess.run(
        [checkout / ".venv/bin/python", "-c", "from trainstack.cli import main; main()", *words],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]} in {checkout}: {done.stdout}{done.stderr}")
    return time.monotonic() - start


def main(older: Path, pairs: int) -> None:
    """Print medians and the ratios of the pairs."""
    found: dict[Path, list[dict[str, float]]] = {older: [], ROOT: []}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text("print('trained')\n")
        for pair in range(pairs):
            for checkout in (older, ROOT) if pair % 2 else (ROOT, older):
                found[checkout].append(life(checkout, folder))
                print(json.dumps({"checkout": str(checkout), **found[checkout][-1]}), flush=True)
    for name in found[ROOT][0]:
        ratios = [now[name] / then[name] for now, then in zip(found[ROOT], found[older], strict=True)]
        now, then = (statistics.median(row[name] for row in found[each]) for each in (ROOT, older))
        print(f"{name}: {then:.1f} s -> {now:.1f} s, {statistics.median(ratios):.2f} {sorted(ratios)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 3)
