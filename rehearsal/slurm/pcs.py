"""Clusters of AWS PCS of a rehearsal: a real Slurm of this machine for each, from the emulated resources."""

import base64
import json
import os
import shutil
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from infra.engine.golang import SetupError
from infra.slurm.machines import NodeHardware, machine
from rehearsal.aws.desired_states import CLUSTER, GROUP, QUEUE, RESOURCE, state_of
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.slurm.cluster import LocalSlurm, free_ports
from rehearsal.slurm.cluster import environment as cluster_environment
from rehearsal.slurm.local_files import LocalNode
from rehearsal.slurm.pcs_files import PcsSystem, Queue, SlurmGroup, files

_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_PORT = "29500"
"""The port of rendezvous of a rendered script; all nodes share the network of this machine."""


def folder(home: Path, cluster: str) -> Path:
    """The folder of the Slurm of a cluster, in the home of a rehearsal."""
    return home / "slurm" / cluster


def environment(home: Path, cluster: str) -> dict[str, str]:
    """Variables by which commands reach a cluster, with the scripts of its login node on PATH.

    Raises SetupError without Slurm's packages.
    """
    place = folder(home, cluster)
    found = cluster_environment(place)
    return {**found, "PATH": os.pathsep.join([found["PATH"], str(place / "login" / "scripts")])}


class PcsClusters:
    """Starts a cluster when its login node is first used, and follows changes of its resources.

    One thread starts all processes: they end with the thread that started them.
    """

    def __init__(self, state: State, home: Path) -> None:
        self._state, self._home = state, home
        self._running: dict[str, tuple[PcsSystem, LocalSlurm]] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="slurm")

    def run(self, login: Record, script: str, more: Mapping[str, str]) -> tuple[int, str]:
        """Exit code and output of a script on the login node. Raises SetupError without Slurm's packages."""
        return self._thread.submit(self._run, login, script, more).result()

    def stop(self) -> None:
        """End the processes of all clusters; does nothing if they have ended."""
        if self._running:
            self._thread.submit(self._stop).result()
        self._thread.shutdown()

    def live(self) -> list[tuple[str, LocalNode, Path]]:
        """Cluster, node and log of each node that runs; clusters that were deleted are ended first."""
        known = {one.id for one in self._of(CLUSTER)}
        if not known.issuperset(self._running):
            self._thread.submit(self._forget).result()
        return [
            (cluster, one, slurm.folder / "log" / one.name)
            for cluster, (_, slurm) in self._running.items()
            for one in slurm.nodes
        ]

    def groups(self) -> list[Record]:
        """All compute node groups."""
        return self._of(GROUP)

    def _of(self, kind: str) -> list[Record]:
        found = self._state.find(type=f"aws:{RESOURCE}")
        return [one for one in found if one.inputs.get("typeName") == kind]

    def _stop(self) -> None:
        for _, slurm in self._running.values():
            slurm.stop()
        self._running = {}

    def _run(self, login: Record, script: str, more: Mapping[str, str]) -> tuple[int, str]:
        self._forget()
        cluster = str((state_of(login.inputs) or {}).get("ClusterId"))
        slurm = self._current(cluster, login)
        folder = slurm.folder / "login"
        for name in ("bin", "shared", "state", "scripts"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        _programs(folder / "bin", more)
        environment = {
            "TRAINSTACK_USER": slurm.user,
            "TRAINSTACK_SHARED": str(folder / "shared"),
            "TRAINSTACK_STATE": str(folder / "state"),
            "TRAINSTACK_SCRIPTS": str(folder / "scripts"),
            "PATH": os.pathsep.join(
                [str(folder / "bin"), str(Path(sys.executable).parent), slurm.environment["PATH"]]
            ),
            **({} if Path("/dev/nvidia0").exists() else {"SMOKE_DEVICE": "cpu"}),
        }
        text = script.replace(_PORT, str(free_ports(3))) if "sbatch" in script else script
        exports = "".join(f"export {key}={json.dumps(value)}\n" for key, value in environment.items())
        (folder / "script").write_text(exports + text, encoding="utf-8")
        done = slurm.run("bash", str(folder / "script"), folder=folder)
        return done.returncode, done.stdout + (done.stderr if done.returncode else "")

    def _forget(self) -> None:
        """End clusters that are deleted."""
        known = {one.id for one in self._of(CLUSTER)}
        for gone in [one for one in self._running if one not in known]:
            _, slurm = self._running.pop(gone)
            slurm.stop()
            shutil.rmtree(slurm.folder, ignore_errors=True)

    def _current(self, cluster: str, login: Record) -> LocalSlurm:
        wanted = self._system(cluster, login)
        running = self._running.get(cluster)
        if running is not None:
            system, slurm = running
            if system == wanted:
                return slurm
            if (system.groups, system.settings) == (wanted.groups, wanted.settings):
                slurm.rewrite(lambda folder: files(wanted, folder))
                self._running[cluster] = wanted, slurm
                return slurm
            slurm.stop()
        slurm = LocalSlurm(folder(self._home, cluster), lambda folder: files(wanted, folder))
        try:
            slurm.start()
        except BaseException:
            slurm.stop()
            raise
        self._running[cluster] = wanted, slurm
        return slurm

    def _system(self, cluster: str, login: Record) -> PcsSystem:
        record = next((one for one in self._of(CLUSTER) if one.id == cluster), None)
        if record is None:
            raise SetupError(f"cluster {cluster} does not exist")
        groups = [one for one in self._mine(GROUP, cluster) if one.id != login.id]
        scripts: dict[str, str] = {}
        for one in groups:
            scripts |= self._scripts(one)
        return PcsSystem(
            name=str((state_of(record.inputs) or {}).get("Name")),
            settings=_settings(record),
            groups=tuple(_group(one) for one in groups),
            queues=tuple(_queue(one) for one in self._mine(QUEUE, cluster)),
            scripts=scripts,
        )

    def _mine(self, kind: str, cluster: str) -> list[Record]:
        return [one for one in self._of(kind) if (state_of(one.inputs) or {}).get("ClusterId") == cluster]

    def _scripts(self, group: Record) -> dict[str, str]:
        """Files that the user data of the group's launch template writes."""
        known = (state_of(group.inputs) or {}).get("CustomLaunchTemplate") or {}
        template = [one for one in self._state.find(type=_TEMPLATE) if one.id == known.get("TemplateId")]
        text = str(template[0].inputs.get("userData") or "") if template else ""
        return written(base64.b64decode(text).decode()) if text else {}


def written(user_data: str) -> dict[str, str]:
    """Files that cloud-init writes, by path; user data of this product is JSON in MIME."""
    lines = (line for line in user_data.splitlines() if line.startswith("{"))
    config = json.loads(next(lines, "{}"))
    return {str(one["path"]): str(one["content"]) for one in config.get("write_files", ())}


def _settings(record: Record) -> dict[str, str]:
    slurm = (state_of(record.inputs) or {}).get("SlurmConfiguration") or {}
    custom = slurm.get("SlurmCustomSettings") or ()
    return {str(one["ParameterName"]): str(one["ParameterValue"]) for one in custom}


def _group(record: Record) -> SlurmGroup:
    state = state_of(record.inputs) or {}
    name = str(state["InstanceConfigs"][0]["InstanceType"])
    hardware = machine("aws", name) or NodeHardware(2, 4096)
    nodes = int(state["ScalingConfiguration"]["MaxInstanceCount"])
    return SlurmGroup(record.id, str(state["Name"]), nodes, hardware, _settings(record))


def _queue(record: Record) -> Queue:
    state = state_of(record.inputs) or {}
    groups = tuple(
        str(one["ComputeNodeGroupId"]) for one in state.get("ComputeNodeGroupConfigurations") or ()
    )
    return Queue(str(state["Name"]), groups, _settings(record))


_AWS = '''#!{python}
"""`aws s3 cp` of the login node, with the rights of its role."""
import os, sys
os.environ.update({variables!r})
import boto3
words = [word for word in sys.argv[1:] if not word.startswith("--")]
assert words[:2] == ["s3", "cp"], f"aws {{' '.join(words)}} is not emulated"
source, target = words[2:]
s3 = boto3.client("s3", region_name=os.environ["AWS_REGION"])
def place(uri):
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key
if target.startswith("s3://"):
    with open(source, "rb") as file:
        bucket, key = place(target)
        s3.put_object(Bucket=bucket, Key=key, Body=file.read())
else:
    bucket, prefix = place(source)
    for one in s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", ()):
        path = os.path.join(target, one["Key"].removeprefix(prefix).lstrip("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(s3.get_object(Bucket=bucket, Key=one["Key"])["Body"].read())
'''


def _programs(folder: Path, variables: Mapping[str, str]) -> None:
    """Programs of the machine image that this machine may lack."""
    path = folder / "aws"
    path.write_text(_AWS.format(python=sys.executable, variables=dict(variables)), encoding="utf-8")
    path.chmod(0o700)
