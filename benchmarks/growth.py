"""Growth of seconds and memory of a rehearsal with the number of resources.

    .venv/bin/python benchmarks/growth.py [counts ...]

For each count (100, 500, 2000): `up`, unchanged `up`, `destroy` of a bare program with that many resources of
AWS and Kubernetes, half of them of two types. Memory is the largest sum of resident sets of engine, program,
providers and daemon, sampled every 0.1 s. Growth is linear when the milliseconds per resource stay the same.
The engine's cannot: it writes its whole state after every step. "ours" is the processor time of the daemon,
in which the emulated clouds live, over all three operations.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from infra.engine.install import require  # noqa: E402
from rehearsal.client import Rehearsal  # noqa: E402

_PROGRAM = """
import json
import pulumi
from pulumi import ResourceOptions


class Thing(pulumi.CustomResource):
    def __init__(self, token, name, props, opts=None):
        super().__init__(token, name, {{**dict.fromkeys(("arn", "endpoint", "name")), **props}}, opts)


def trust(service):
    statement = {{"Effect": "Allow", "Principal": {{"Service": service}}, "Action": "sts:AssumeRole"}}
    return json.dumps({{"Version": "2012-10-17", "Statement": [statement]}})


vpc = Thing("aws:ec2/vpc:Vpc", "vpc", {{"cidrBlock": "10.0.0.0/16"}})
subnets = [
    Thing("aws:ec2/subnet:Subnet", f"s{{zone}}", {{
        "vpcId": vpc.id, "cidrBlock": f"10.0.{{index}}.0/24", "availabilityZone": f"us-east-1{{zone}}"}})
    for index, zone in enumerate("ab")
]
role = Thing("aws:iam/role:Role", "cluster", {{"assumeRolePolicy": trust("eks.amazonaws.com")}})
cluster = Thing("aws:eks/cluster:Cluster", "cluster", {{
    "roleArn": role.arn, "vpcConfig": {{"subnetIds": [subnet.id for subnet in subnets]}}}})
config = cluster.endpoint.apply(lambda endpoint: json.dumps({{
    "apiVersion": "v1", "kind": "Config", "current-context": "c",
    "clusters": [{{"name": "c", "cluster": {{"server": endpoint}}}}],
    "contexts": [{{"name": "c", "context": {{"cluster": "c", "user": "u"}}}}],
    "users": [{{"name": "u", "user": {{"token": "t"}}}}]}}))
inside = ResourceOptions(provider=pulumi.ProviderResource("kubernetes", "inside", {{"kubeconfig": config}}))
for index in range(({count} - 6) // 4):
    Thing("aws:ec2/securityGroup:SecurityGroup", f"g{{index}}", {{"vpcId": vpc.id, "description": "d"}})
    Thing("aws:iam/role:Role", f"r{{index}}", {{"assumeRolePolicy": trust("ec2.amazonaws.com")}})
    Thing("aws:cloudwatch/logGroup:LogGroup", f"l{{index}}", {{"retentionInDays": 7}})
    Thing("kubernetes:core/v1:ConfigMap", f"c{{index}}", {{"data": {{"n": str(index)}}}}, inside)
"""


def daemons(home: Path) -> list[psutil.Process]:
    """The daemon of `home`, if it runs."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "rehearsal.daemon" in words and str(home) in words:
            found.append(process)
    return found


def resident(root: int, home: Path) -> int:
    """Bytes in memory of a process with all below it, and of the daemon of `home`."""
    processes = [psutil.Process(root), *psutil.Process(root).children(recursive=True)]
    total = 0
    for process in processes + daemons(home):
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total


def measured(words: list[str], folder: Path, environment: dict[str, str]) -> tuple[float, int]:
    """Seconds and peak bytes of one command."""
    start, peak = time.perf_counter(), 0
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=said, stderr=said)
        while process.poll() is None:
            try:
                peak = max(peak, resident(process.pid, folder / "rehearsal"))
            except psutil.NoSuchProcess:
                continue
            time.sleep(0.1)
    if process.returncode:
        sys.exit((folder / "said").read_text()[-3000:])
    return time.perf_counter() - start, peak


def measure(count: int) -> None:
    """Print one line of figures."""
    with tempfile.TemporaryDirectory(prefix="trainstack-growth-") as work:
        folder = Path(work).resolve()
        (folder / "cache").symlink_to(ROOT / ".trainstack" / "cache")
        (folder / "Pulumi.yaml").write_text("name: growth\nruntime: python\n")
        (folder / "__main__.py").write_text(_PROGRAM.format(count=count))
        rehearsal, cli = Rehearsal(folder / "rehearsal"), require()
        environment = {**os.environ, **rehearsal.environment(), "AWS_REGION": "us-east-1"}
        environment["PATH"] = f"{cli.folder}{os.pathsep}{environment['PATH']}"
        try:
            measured([cli.path, "stack", "init", "dev", "--non-interactive"], folder, environment)
            figures = []
            for operation in ("up", "up", "destroy"):
                words = [cli.path, operation, "--yes", "--skip-preview", "--non-interactive"]
                figures.append(measured(words, folder, environment))
            left = sum(rehearsal.status()["resources"].values())
            spent = sum(sum(daemon.cpu_times()[:2]) for daemon in daemons(folder / "rehearsal"))
        finally:
            rehearsal.stop()
    seconds = "  ".join(f"{s:7.1f} ({1000 * s / count:5.1f} ms)" for s, _ in figures)
    ours = f"{spent:6.1f} ({1000 * spent / count:4.1f} ms)"
    peak = max(peak for _, peak in figures) / 2**20
    print(f"{count:6}  {seconds}  {ours}  {peak:6.0f} MiB  {left} left", flush=True)


if __name__ == "__main__":
    print("         up                 unchanged up       destroy            ours              peak memory")
    for wanted in [int(word) for word in sys.argv[1:]] or [100, 500, 2000]:
        measure(wanted)
