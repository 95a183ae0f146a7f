"""Times plain AWS resources in a rehearsal and the very same ones made by Terraform in a local moto server.

    .venv/bin/python benchmarks/terraform.py [runs] [resources]

Each run (3, of 61 resources) times in turn: `up` and `destroy` of a Pulumi program in a fresh rehearsal, the
start of its daemon included; `terraform apply` and `terraform destroy`, moto running already and emptied.
Set-up (`stack init`, `terraform init`) is in neither. Each tool has its own default of operations at a time.
Terraform's time includes the waits of its AWS provider for changes to propagate, as it would for real AWS.

Terraform finds its provider as ever: by its settings, in a mirror, or in a folder on this machine, by
`TF_CLI_ARGS_init=-plugin-dir=FOLDER` in the environment.

Without Terraform, or where its provider cannot be had, a line says so. In any case the calls that make and
delete the resources are timed without a tool, through boto3 on the same server: one after the other, and ten
at a time, Terraform's default. That is NOT Terraform. It is a floor of what Terraform can reach: no process,
no plan, no reads, no waits, no state; only boto3's own time per call may differ from that of Terraform's.

Seconds of wall time as medians; ratios are taken pair by pair.
"""

import itertools
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.compared.plain_resources import KINDS, REGION, Calls, Resource, plain_resources  # noqa: E402
from infra.engine.install import require  # noqa: E402
from rehearsal.client import Rehearsal  # noqa: E402

_PROGRAM = """
import functools, json, pathlib, re
import pulumi_aws as aws

made = {}


def resolved(value):
    reference = re.fullmatch(r"\\$\\{\\w+\\.(\\w+)\\.(\\w+)\\}", str(value))
    return getattr(made[reference[1]], reference[2]) if reference else value


for entry in json.loads(pathlib.Path("resources.json").read_text()):
    arguments = {name: resolved(value) for name, value in entry["arguments"].items()}
    make = functools.reduce(getattr, entry["class"].split("."), aws)
    made[entry["name"]] = make(entry["name"], **arguments)
"""
# From 6.23 on the provider reads the tags of buckets from a host named after the account, which an address of
# this machine cannot be (github.com/hashicorp/terraform-provider-aws/issues/45292).
_PROVIDER = {"source": "hashicorp/aws", "version": ">= 5.0.0, < 6.23.0"}
_SERVICES = ("ec2", "iam", "kms", "logs", "s3", "sts")
_LIMIT_S = 900.0
_INIT_LIMIT_S = 180.0
_PATIENCE_S = 60.0


class CommandError(Exception):
    """A command failed or took too long; the text is its output."""


def timed(words: list[str], folder: Path, environment: Mapping[str, str], limit: float = _LIMIT_S) -> float:
    """Seconds of a command. Nothing it started in its session outlives it."""
    said = folder / "said"
    start = time.perf_counter()
    with said.open("w") as out:
        process = subprocess.Popen(
            words, cwd=folder, env=environment, stdout=out, stderr=out, start_new_session=True
        )
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired as error:
            raise CommandError(f"{said.read_text()}\nno end in {limit:.0f} s") from error
        finally:
            seconds = time.perf_counter() - start
            end_session(process)
    if process.returncode:
        raise CommandError(said.read_text())
    return seconds


def end_session(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session, and what it left in it, such as providers."""
    with suppress(ProcessLookupError):  # nothing is left
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def own_environment() -> dict[str, str]:
    """Ours without what leads to real AWS, or changes what Terraform does but for where its provider is."""
    kept = ("TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR", "TF_CLI_ARGS_init")
    plain = {
        name: value
        for name, value in os.environ.items()
        if name in kept or not name.startswith(("AWS_", "TF_", "MOTO_"))
    }
    nowhere = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    return {**plain, **nowhere, "AWS_EC2_METADATA_DISABLED": "true", "CHECKPOINT_DISABLE": "1"}


@contextmanager
def moto_server(folder: Path) -> Iterator[str]:
    """The address of a moto server of our own, on a port that was free."""
    said = folder / "moto.log"
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with said.open("w") as out:
        process = subprocess.Popen(
            words, cwd=folder, env=own_environment(), stdout=out, stderr=out, start_new_session=True
        )
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while not (found := re.search(r"http://127\.0\.0\.1:[1-9]\d*", said.read_text())):
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the moto server does not start:\n{said.read_text()}")
            time.sleep(0.1)
        yield found[0]
    finally:
        end_session(process)


def emptied(address: str, calls: Calls) -> None:
    """Empty the moto server and let it make the defaults of an account again; counted for neither side."""
    request = urllib.request.Request(f"{address}/moto-api/reset", method="POST")
    with urllib.request.urlopen(request, timeout=_PATIENCE_S):
        pass
    calls.touch()


def rehearsed(folder: Path, resources: list[Resource]) -> tuple[float, float]:
    """Seconds of `up` and `destroy` in a fresh rehearsal."""
    folder.mkdir()
    (folder / "cache").symlink_to(ROOT / ".trainstack" / "cache")
    (folder / "Pulumi.yaml").write_text("name: plain\nruntime: python\n")
    (folder / "__main__.py").write_text(_PROGRAM)
    entries = [
        {"class": KINDS[each.kind].pulumi, "name": each.name, "arguments": each.arguments}
        for each in resources
    ]
    (folder / "resources.json").write_text(json.dumps(entries))
    rehearsal, cli = Rehearsal(folder / "rehearsal"), require()
    environment = {**own_environment(), **rehearsal.environment(), "AWS_REGION": REGION}
    environment["PATH"] = f"{cli.folder}{os.pathsep}{environment['PATH']}"
    options = ["--yes", "--skip-preview", "--non-interactive"]
    try:
        timed([cli.path, "stack", "init", "dev", "--non-interactive"], folder, environment)
        up = timed([cli.path, "up", *options], folder, environment)
        expect("the rehearsal", rehearsal.count("::plain::"), len(resources))
        down = timed([cli.path, "destroy", *options], folder, environment)
        expect("the rehearsal", rehearsal.count("::plain::"), 0)
    finally:
        rehearsal.stop()
    return up, down


def configuration(resources: list[Resource], address: str) -> dict[str, object]:
    """Terraform's JSON configuration of the resources, in the server at `address`."""
    provider = {
        "region": REGION,
        "access_key": "benchmark",
        "secret_key": "benchmark",
        "s3_use_path_style": True,
        "skip_credentials_validation": True,
        "skip_metadata_api_check": True,
        "endpoints": [dict.fromkeys(_SERVICES, address)],
    }
    made: dict[str, dict[str, object]] = {}
    for each in resources:
        made.setdefault(each.kind, {})[each.name] = each.arguments
    return {
        "terraform": {"required_providers": {"aws": _PROVIDER}},
        "provider": {"aws": provider},
        "resource": made,
    }


def terraform_missing(folder: Path, resources: list[Resource], address: str) -> str | None:
    """Prepare Terraform in `folder`; return the reason if it cannot be measured, else None."""
    if shutil.which("terraform") is None:
        return "no terraform"
    folder.mkdir()
    (folder / "main.tf.json").write_text(json.dumps(configuration(resources, address), indent=2))
    try:
        timed(
            ["terraform", "init", "-input=false", "-no-color"], folder, own_environment(), limit=_INIT_LIMIT_S
        )
    except CommandError as error:
        # What follows the error's own line is advice.
        lines = [line for raw in str(error).splitlines() if (line := raw.strip(" │╵╷"))]
        errors = [line for line in lines if line.startswith("Error:")]
        return f"terraform init failed: {(errors or lines or ['it said nothing'])[-1]}"
    return None


def terraformed(folder: Path, count: int) -> tuple[float, float]:
    """Seconds of `terraform apply` and `terraform destroy`."""
    environment = own_environment()
    options = ["-auto-approve", "-input=false", "-no-color"]
    up = timed(["terraform", "apply", *options], folder, environment)
    timed(["terraform", "state", "list"], folder, environment)
    made = [line for line in (folder / "said").read_text().splitlines() if line.startswith("aws_")]
    expect("Terraform", len(made), count)
    down = timed(["terraform", "destroy", *options], folder, environment)
    return up, down


def expect(whose: str, count: int, wanted: int) -> None:
    if count != wanted:
        raise CommandError(f"{whose} has {count} resources, not {wanted}")


def measure(runs: int, resources: list[Resource], work: Path) -> dict[str, list[tuple[float, float]]]:
    """(create, delete) seconds of every run, by who did it."""
    figures: dict[str, list[tuple[float, float]]] = {}
    with moto_server(work) as address:
        missing = terraform_missing(work / "terraform", resources, address)
        if missing:
            print(f"skipped: {missing}", flush=True)
        calls = Calls(address)
        calls.make_and_delete(resources, at_once=1)  # moto loads a service at its first call
        for run in range(runs):
            figures.setdefault("rehearsal", []).append(rehearsed(work / f"run{run}", resources))
            if not missing:
                emptied(address, calls)
                figures.setdefault("terraform", []).append(terraformed(work / "terraform", len(resources)))
            for at_once in (1, 10):
                emptied(address, calls)
                spent = calls.make_and_delete(resources, at_once=at_once)
                figures.setdefault(f"NOT terraform: boto3, {at_once} at a time", []).append(spent)
    return figures


def median(values: list[float]) -> str:
    return f"{statistics.median(values):7.2f} ({min(values):.2f} .. {max(values):.2f})"


def main(runs: int, count: int) -> None:
    resources = list(itertools.islice(plain_resources(), count))
    with tempfile.TemporaryDirectory(prefix="trainstack-terraform-") as work:
        try:
            figures = measure(runs, resources, Path(work).resolve())
        except CommandError as error:
            sys.exit(str(error)[-3000:])
    print(f"{len(resources)} resources, {runs} runs; seconds as median (min .. max): create, delete, both")
    for who, spent in figures.items():
        columns = ([up for up, _ in spent], [down for _, down in spent], [sum(pair) for pair in spent])
        print(f"  {who:34} {'   '.join(median(column) for column in columns)}")
    ours = figures.pop("rehearsal")
    for who, theirs in figures.items():
        ratios = [sum(mine) / sum(other) for mine, other in zip(ours, theirs, strict=True)]
        print(f"  rehearsal / {who}, both: {median(ratios)}")


if __name__ == "__main__":
    # An end by the system's hand takes the way out that ends what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    numbers = [int(word) for word in sys.argv[1:]]
    main(*(numbers + [3, 61][len(numbers) :]))
