"""Clusters of AWS PCS of a rehearsal, from the emulated resources of Cloud Control."""

import base64
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from infra.engine.golang import SetupError
from infra.slurm.machines import NodeHardware, machine
from rehearsal.aws.desired_states import CLUSTER, GROUP, QUEUE, RESOURCE, state_of
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.slurm.local_files import LocalNode
from rehearsal.slurm.running import Image, RunningClusters
from rehearsal.slurm.service_files import Queue, ServiceSystem, SlurmGroup

_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


class PcsClusters:
    """See `RunningClusters`."""

    def __init__(self, state: State, home: Path) -> None:
        self._state = state
        self._clusters = RunningClusters(home, lambda: {one.id for one in self._of(CLUSTER)})

    def run(self, login: Record, script: str, more: Mapping[str, str]) -> tuple[int, str]:
        """Exit code and output of a script on the login node. Raises SetupError without Slurm's packages."""
        cluster = str((state_of(login.inputs) or {}).get("ClusterId"))
        image = Image({"aws": _AWS.format(python=sys.executable, variables=dict(more))}, more)
        return self._clusters.run(cluster, lambda: self._system(cluster, login), script, image)

    def stop(self) -> None:
        """End the processes of all clusters; does nothing if they have ended."""
        self._clusters.stop()

    def live(self) -> list[tuple[str, LocalNode, Path]]:
        """Cluster, node and log of each node that runs."""
        return self._clusters.live()

    def groups(self) -> list[Record]:
        """All compute node groups."""
        return self._of(GROUP)

    def _of(self, kind: str) -> list[Record]:
        found = self._state.find(type=f"aws:{RESOURCE}")
        return [one for one in found if one.inputs.get("typeName") == kind]

    def _system(self, cluster: str, login: Record) -> ServiceSystem:
        record = next((one for one in self._of(CLUSTER) if one.id == cluster), None)
        if record is None:
            raise SetupError(f"cluster {cluster} does not exist")
        groups = [one for one in self._mine(GROUP, cluster) if one.id != login.id]
        scripts: dict[str, str] = {}
        for one in groups:
            scripts |= self._scripts(one)
        return ServiceSystem(
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
