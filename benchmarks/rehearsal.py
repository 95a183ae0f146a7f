"""Times rehearsed deployments of dev-aws, and what the same number of resources costs with empty providers.

    .venv/bin/python benchmarks/rehearsal.py [runs] [clouds]

Each run does, in turn: the stack without the validation run (`up`, unchanged `up`, `destroy`); a bare program
with as many resources and empty providers (`up`, `destroy`), once with little in them and once with as much
as the stack has, because the engine writes the whole state after every step; the whole stack (`up`,
`destroy`). Everything runs in a folder of its own. Seconds of wall time as medians; the ratios are taken pair
by pair. An `up` waits for the replicas of a real MLflow server, which is no part of provisioning: "but for
MLflow" ends when everything else exists. Peak memory is that of the largest single process, from the kernel's
accounting of finished children.

With `clouds`, the development stacks of both clouds instead, in turns, without the validation run: time per
resource, and the ratio run by run.
"""

import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from infra.engine.install import require  # noqa: E402
from rehearsal.client import Rehearsal  # noqa: E402

_BARE_PROGRAM = """
import pulumi, pulumi_aws as aws
provider = aws.Provider("aws", region="us-east-1")
parent = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", opts=pulumi.ResourceOptions(provider=provider))
for index in range({count} - 2):
    aws.ec2.Subnet(f"r{{index}}", vpc_id=parent.id, cidr_block="10.0.0.0/24", tags={{"n": "x" * {padding}}},
                   opts=pulumi.ResourceOptions(provider=provider))
"""


STACKS = ("dev-aws", "dev-gcp")
# What a resource of the bare program takes in the state besides its padding, halved.
_OWN_BYTES = 750


def timed(command: list[str], environment: dict[str, str], cwd: Path) -> tuple[float, str]:
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, cwd=cwd, check=False, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return seconds, done.stdout


def stack_copy(folder: Path, *, smoke: bool, stack: str = "dev-aws") -> Path:
    """A checkout that shares everything with this one but the stack file and the state."""
    folder.mkdir()
    folders = ("agents", "components", "infra", "policies", "smoke_training", "stacks")
    for name in (*folders, "Pulumi.yaml", "pyproject.toml"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / ".trainstack").mkdir()
    for name in ("bin", "engine.json", "cache"):
        if (ROOT / ".trainstack" / name).exists():
            (folder / ".trainstack" / name).symlink_to(ROOT / ".trainstack" / name)
    if not smoke:
        file = folder / "stacks" / "config" / f"Pulumi.{stack}.yaml"
        off = r"\1      enabled: false\n      schedule: null\n"
        file.write_text(re.sub(r"(    smoke:\n)", off, file.read_text()))
    return folder


def rehearse(folder: Path, *words: str, stack: str = "dev-aws") -> tuple[float, str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    command = [
        str(ROOT / ".venv/bin/python"),
        "-c",
        "from trainstack.cli import main; main()",
        *words,
        "-s",
        stack,
        "--rehearse",
    ]
    return timed(command, environment, folder)


def state_file(home: Path) -> Path:
    """The only stack's state of a rehearsal."""
    return next((home / "state/.pulumi/stacks").glob("*/*.json"))


def all_but_mlflow(state: Path, started: float) -> float:
    """Seconds from `started` until the last resource was created that did not wait for the MLflow server."""
    resources = json.loads(state.read_text())["checkpoint"]["latest"]["resources"]
    created = {
        entry["urn"]: datetime.fromisoformat(entry["created"]).timestamp()
        for entry in resources
        if "created" in entry
    }
    server = max(at for urn, at in created.items() if "apps/v1:Deployment" in urn)
    return max(at for at in created.values() if at < server) - started


def bare(folder: Path, count: int, size: int = 0) -> tuple[float, float]:
    """`up` and `destroy` of a program with `count` resources whose provider does nothing.

    `size`: how large its state shall be, in bytes. The state holds every property twice, given and got.
    """
    padding = max(0, size // count // 2 - _OWN_BYTES)
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: bare\nruntime: python\n")
    (folder / "__main__.py").write_text(_BARE_PROGRAM.format(count=count, padding=padding))
    environment = {**os.environ, **Rehearsal(folder / "home").environment()}
    environment["PATH"] = f"{require().folder}:{environment['PATH']}"
    launcher = next((folder / "home").glob("pulumi/plugins/resource-aws-*/pulumi-resource-aws"))
    launcher.write_text(
        f'#!/bin/sh\nexec {sys.executable} {ROOT / "benchmarks/compared/empty_provider.py"} "$@"\n'
    )
    timed(["pulumi", "stack", "init", "dev", "--non-interactive"], environment, folder)
    options = ["--yes", "--skip-preview", "--non-interactive"]
    up, _ = timed(["pulumi", "up", *options], environment, folder)
    reached = state_file(folder / "home").stat().st_size
    if size and not 0.9 < reached / size < 1.1:
        sys.exit(f"the bare program's state has {reached} bytes, not {size}")
    down, _ = timed(["pulumi", "destroy", *options], environment, folder)
    return up, down


def created(output: str) -> int:
    """How many resources an `up` made, components included: a provider sees only the rest."""
    found = re.search(r"(\d+) created", output)
    assert found
    return int(found.group(1))


def median(values: list[float]) -> str:
    return f"{statistics.median(values):6.1f}  ({min(values):.1f} .. {max(values):.1f})"


def main(runs: int) -> None:
    figures: dict[str, list[float]] = {}

    def note(name: str, seconds: float) -> None:
        figures.setdefault(name, []).append(seconds)

    count = 0
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="trainstack-benchmark-") as work:
            plain = stack_copy(Path(work, "plain"), smoke=False)
            started = time.time()
            seconds, output = rehearse(plain, "up", "--yes")
            count = created(output)
            state = state_file(plain / ".trainstack/rehearsal")
            note("up without validation", seconds)
            note("  but for MLflow", all_but_mlflow(state, started))
            size = state.stat().st_size
            note("unchanged up", rehearse(plain, "up", "--yes")[0])
            note("destroy", rehearse(plain, "destroy", "--yes")[0])
            up, down = bare(Path(work, "bare"), count)
            note("bare up", up)
            note("bare destroy", down)
            up, down = bare(Path(work, "heavy"), count, size)
            note("bare up, same state size", up)
            note("bare destroy, same size", down)
            whole = stack_copy(Path(work, "whole"), smoke=True)
            note("up with validation", rehearse(whole, "up", "--yes")[0])
            rehearse(whole, "destroy", "--yes")
    print(f"{count} resources, {runs} runs; seconds as median (min .. max)")
    for name, values in figures.items():
        print(f"  {name:24} {median(values)}")
    for name in ("up without validation", "  but for MLflow"):
        for other in ("bare up", "bare up, same state size"):
            ratios = [ours / theirs for ours, theirs in zip(figures[name], figures[other], strict=True)]
            print(f"  {name.strip()} / {other}: {median(ratios)}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"  largest process          {peak:6.0f}  MiB")


def deployed(stack: str) -> tuple[int, dict[str, float]]:
    """Resources of one stack, and seconds by what was done with it."""
    with tempfile.TemporaryDirectory(prefix="trainstack-benchmark-") as work:
        folder = stack_copy(Path(work, "plain"), smoke=False, stack=stack)
        started = time.time()
        seconds, output = rehearse(folder, "up", "--yes", stack=stack)
        state = state_file(folder / ".trainstack/rehearsal")
        found = {"up": seconds, "up but for MLflow": all_but_mlflow(state, started)}
        found["unchanged up"] = rehearse(folder, "up", "--yes", stack=stack)[0]
        found["destroy"] = rehearse(folder, "destroy", "--yes", stack=stack)[0]
        return created(output), found


def clouds(runs: int) -> None:
    figures: dict[str, dict[str, list[float]]] = {stack: {} for stack in STACKS}
    for _ in range(runs):
        for stack in STACKS:
            count, found = deployed(stack)
            for name, seconds in found.items():
                figures[stack].setdefault(name, []).append(seconds / count * 1000)
            print(f"{stack}: {count} resources, " + ", ".join(f"{k} {v:.1f} s" for k, v in found.items()))
    print(f"{runs} runs; ms per resource as median (min .. max)")
    for name in figures[STACKS[0]]:
        aws, gcp = (figures[stack][name] for stack in STACKS)
        ratio = statistics.median(ours / theirs for ours, theirs in zip(gcp, aws, strict=True))
        print(f"  {name:18} dev-aws {median(aws)}  dev-gcp {median(gcp)}  ratio {ratio:.2f}")


if __name__ == "__main__":
    number = next((int(word) for word in sys.argv[1:] if word.isdigit()), 3)
    (clouds if "clouds" in sys.argv[1:] else main)(number)
