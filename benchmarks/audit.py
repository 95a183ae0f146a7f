"""Times an audit of 1,000 and of 10,000 resources by all rules, process start included.

    .venv/bin/python benchmarks/audit.py [runs] [path of checkov]

The resources are those of the recorded examples that pass, repeated under new names. With checkov (from an
environment of its own: `pip install checkov`) it judges as many, buckets as Terraform, in turns with ours.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.policies.recording.recordings import export, keys  # noqa: E402

TRAINSTACK = str(ROOT / ".venv" / "bin" / "trainstack")
BUCKET = """
resource "aws_s3_bucket" "b{n}" {{
  bucket = "training-data-{n}"
  tags   = {{ owner = "anna", team = "vision", cost-center = "42", environment = "dev" }}
}}
"""


def rows() -> Iterator[dict[str, Any]]:
    """Resources without end; those that refer to each other keep doing so."""
    examples = [export(key, "pass") for key in keys()]
    for number in count():
        for index, example in enumerate(examples):
            text = json.dumps(example["deployment"]["resources"])
            yield from json.loads(text.replace("urn:pulumi:pass", f"urn:pulumi:n{number}e{index}"))


def state(folder: Path, wanted: int) -> Path:
    """An export with so many resources of clouds; the least rows that have them."""
    taken, kept = [], 0
    for row in rows():
        taken.append(row)
        kept += bool(row.get("custom")) and not row["type"].startswith("pulumi:")
        if kept == wanted:
            break
    file = folder / f"{wanted}.json"
    file.write_text(json.dumps({"version": 3, "deployment": {"resources": taken}}))
    return file


def seconds(command: list[str]) -> float:
    """Wall time of a process that is allowed to find something."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    taken = time.perf_counter() - start
    if done.returncode not in (0, 1, 3, 4) or "internal error" in done.stderr:
        raise RuntimeError(done.stderr)
    return taken


def main(runs: int, checkov: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for wanted in (1_000, 10_000):
            commands = {"trainstack": [TRAINSTACK, "audit", "--state", str(state(folder, wanted))]}
            if checkov:
                terraform = folder / f"terraform{wanted}"
                terraform.mkdir()
                text = "".join(BUCKET.format(n=n) for n in islice(count(), wanted))
                (terraform / "main.tf").write_text(text)
                commands["checkov"] = [checkov, "-d", str(terraform), "--compact", "--quiet", "-o", "json"]
            taken: dict[str, list[float]] = {tool: [] for tool in commands}
            for _ in range(runs):
                for tool, command in commands.items():
                    taken[tool].append(seconds(command))
            for tool, values in taken.items():
                spread = f"{min(values):.2f} .. {max(values):.2f}"
                print(f"{wanted:6} resources, {tool:10} {statistics.median(values):.2f} s  ({spread})")
            if checkov:
                ratio = statistics.median(taken["checkov"]) / statistics.median(taken["trainstack"])
                print(f"{wanted:6} resources, ratio {ratio:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2] if len(sys.argv) > 2 else "")
