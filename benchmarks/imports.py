"""Times the import of the program, loading and checking a spec, and `trainstack --help`.

    .venv/bin/python benchmarks/imports.py [runs]

Each figure is a process of its own; `python -c pass` is subtracted where it says "beyond Python".
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = str(ROOT / ".venv" / "bin" / "python")
CASES = {
    "python -c pass": [PYTHON, "-c", "pass"],
    "import of the program": [PYTHON, "-c", "import stacks.__main__"],
    "import + load + check spec": [PYTHON, "-c", "import infra.stackspec as s; s.load_file('dev-aws')"],
    "trainstack --help": [str(ROOT / ".venv" / "bin" / "trainstack"), "--help"],
}


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - start


def main(runs: int) -> None:
    for name, command in CASES.items():
        seconds(command)
        values = [seconds(command) for _ in range(runs)]
        print(f"{name:28} {statistics.median(values):.2f} s  ({min(values):.2f} .. {max(values):.2f})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
