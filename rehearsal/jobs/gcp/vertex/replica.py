"""One replica of a custom job: its folders, the buckets that it mounts, its environment, its process.

Source: Vertex AI documentation, "Distributed training" (CLUSTER_SPEC, TF_CONFIG), "Environment variables for
special Cloud Storage directories" (AIP_*), "Prepare training code" (buckets at /gcs/<bucket>);
googleapis/python-aiplatform (CLOUD_ML_JOB_ID, AIP_TENSORBOARD_RESOURCE_NAME).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.catalog.gcp import facts
from rehearsal.core.state import State
from rehearsal.dataplane import folders
from rehearsal.dataplane.gcp.iam_bindings import may_somewhere
from rehearsal.dataplane.gcp.storage import BUCKET
from rehearsal.jobs.gcp.vertex.failures import INVALID, CustomJobError
from rehearsal.jobs.gcp.vertex.records import CustomJob, JobFailure
from rehearsal.jobs.running.machine import JobMachine, missing_hardware, program

# A container's pod has half a minute after SIGTERM (Kubernetes, terminationGracePeriodSeconds), of which the
# service's documentation says nothing; a rehearsal waits a tenth of it.
GRACE_S = 3.0
_PORT = 2222
_MOUNT = "/gcs"
_RIGHTS = ("storage.objects.get", "storage.objects.create", "storage.objects.list")
# What TensorFlow calls the worker pools; evaluators are in no cluster.
_TASKS = ("chief", "worker", "ps")


@dataclass(frozen=True)
class ReplicaEnvironment:
    """What a replica finds around it: the APIs, the metadata server, who it is there."""

    url: str
    """With a slash at its end."""
    metadata_host: str
    members: tuple[str, ...]
    located: Callable[[str], str]
    """Replaces the addresses of services that run here by where they answer."""


class JobReplica(JobMachine):
    """A machine of a job; `addresses` are those of all its replicas by name."""

    def __init__(self, job: CustomJob, name: str, folder: Path, addresses: Mapping[str, str]) -> None:
        super().__init__(name, folder, addresses)
        self._job = job
        self._pool, self._index = job.replicas[name]
        self.restarts = 0

    def prepare(self, state: State, members: Sequence[str]) -> None:
        """Make its folders and mount the buckets, those of which it may use no object so that it sees why."""
        for part in ("home", "tmp", "gcs"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        home = state.path.parent
        for bucket in state.find(type=BUCKET):
            kept = folders.bucket(home, bucket.id, "gs")
            kept.mkdir(parents=True, exist_ok=True)
            may = any(may_somewhere(state, members, right, bucket) for right in _RIGHTS)
            target = kept if may else folders.denied(home, bucket.id, "gs")
            (self.folder / "gcs" / bucket.id).symlink_to(target)

    def start(self, around: ReplicaEnvironment, cpus: Sequence[int]) -> None:
        """Start the container's command. Raises JobFailed when it cannot run here."""
        spec = self._job.spec["workerPoolSpecs"][self._pool]
        container = spec.get("containerSpec") or {}
        here = self.translator({_MOUNT: self.folder / "gcs"}, around.located)
        words = command(container)
        given = {str(one["name"]): here(str(one.get("value") or "")) for one in container.get("env") or ()}
        argv = (runnable(container), *(here(word) for word in words[1:]))
        machine = str((spec.get("machineSpec") or {}).get("machineType"))
        emulated = machine in facts.machine_types or machine in facts.cpu_types
        told = {**self._told(around), **missing_hardware(emulated=emulated)}
        self.run(argv, {**told, **given}, self._job.id, cpus, GRACE_S)

    def _told(self, around: ReplicaEnvironment) -> dict[str, str]:
        """What the service adds to the environment of a request."""
        apis = ("AIPLATFORM", "LOGGING", "SECRETMANAGER", "IAMCREDENTIALS", "PUBSUB")
        return {
            "CLUSTER_SPEC": json.dumps(self._cluster()),
            **self._tensorflow(),
            "CLOUD_ML_JOB_ID": self._job.id,
            **self._directories(),
            "GCE_METADATA_HOST": around.metadata_host,
            "GCE_METADATA_IP": around.metadata_host,
            "AWS_EC2_METADATA_DISABLED": "true",
            "STORAGE_EMULATOR_HOST": around.url.rstrip("/"),
            **{f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}": around.url for api in apis},
            # Nobody can mount anything at /gcs here, so programs that make paths themselves are told.
            "TRAINSTACK_GCS": str(self.folder / "gcs"),
        }

    def _cluster(self) -> dict[str, Any]:
        """CLUSTER_SPEC; names of machines would lead nowhere here, their addresses do."""
        pools: dict[str, list[str]] = {}
        for name, (pool, _) in self._job.replicas.items():
            pools.setdefault(f"workerpool{pool}", []).append(f"{self.addresses[name]}:{_PORT}")
        task = {"type": f"workerpool{self._pool}", "index": self._index}
        return {"cluster": pools, "environment": "cloud", "task": task, "job": self._job.spec}

    def _tensorflow(self) -> dict[str, str]:
        """TF_CONFIG, which jobs of one replica do not have."""
        if len(self._job.replicas) == 1:
            return {}
        cluster: dict[str, list[str]] = {}
        for name, (pool, _) in self._job.replicas.items():
            if pool < len(_TASKS):
                cluster.setdefault(_TASKS[pool], []).append(f"{self.addresses[name]}:{_PORT}")
        kind = _TASKS[self._pool] if self._pool < len(_TASKS) else "evaluator"
        told = {"cluster": cluster, "task": {"type": kind, "index": self._index}, "environment": "cloud"}
        return {"TF_CONFIG": json.dumps({**told, "job": self._job.spec})}

    def _directories(self) -> dict[str, str]:
        """AIP_*, which jobs without a base directory do not have."""
        base = (self._job.spec.get("baseOutputDirectory") or {}).get("outputUriPrefix")
        board = self._job.spec.get("tensorboard")
        named = {"MODEL": "model", "CHECKPOINT": "checkpoints", "TENSORBOARD_LOG": "logs"}
        found = {f"AIP_{key}_DIR": f"{str(base).rstrip('/')}/{name}/" for key, name in named.items()}
        return {
            **(found if base else {}),
            **({"AIP_TENSORBOARD_RESOURCE_NAME": str(board)} if board else {}),
        }


def command(container: Mapping[str, Any]) -> list[str]:
    """The command of a container with its arguments."""
    return [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]


def runnable(container: Mapping[str, Any]) -> str:
    """The program of this machine that a container begins with. Raises JobFailed without one."""
    try:
        return program([str(word) for word in container.get("command") or ()])
    except LookupError as error:
        raise CustomJobError(JobFailure(INVALID, str(error.args[0]))) from None
