"""One replica of a custom job: folders, mounted buckets, environment, process.

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
from rehearsal.dataplane.gcp.iam_bindings import allowed_object
from rehearsal.dataplane.gcp.storage import BUCKET
from rehearsal.jobs.gcp.vertex.failures import INVALID, CustomJobError
from rehearsal.jobs.gcp.vertex.records import CustomJob, JobFailure
from rehearsal.jobs.running.machine import MachineProcess, missing_hardware, program

# A container's pod has 30 s after SIGTERM (Kubernetes, terminationGracePeriodSeconds), of which the
# service's documentation has no value; a rehearsal waits a tenth of it.
GRACE_S = 3.0
_PORT = 2222
_MOUNT = "/gcs"
# Cloud Storage FUSE opens a bucket by GetStorageLayout or objects.list without a prefix, and reads folders
# above a file. Source: gcsfuse 7b392927 internal/storage/storage_handle.go, internal/fs/inode/dir.go; its
# pull request 4980.
_OPENS = ("storage.objects.list", "storage.objects.get")
# TensorFlow's names of the worker pools; evaluators are not part of the cluster.
_TASKS = ("chief", "worker", "ps")


@dataclass(frozen=True)
class ReplicaEnvironment:
    """URLs of the APIs and the metadata server, and the identity of a replica."""

    url: str
    """With a slash at its end."""
    metadata_host: str
    members: tuple[str, ...]
    located: Callable[[str], str]
    """Replaces addresses of services that run here by their local URLs."""


class JobReplica(MachineProcess):
    """A replica of a custom job; `addresses` maps the names of all its replicas."""

    def __init__(self, job: CustomJob, name: str, folder: Path, addresses: Mapping[str, str]) -> None:
        super().__init__(name, folder, addresses)
        self._job = job
        self._pool, self._index = job.replicas[name]
        self.restarts = 0

    def prepare(self, state: State, members: Sequence[str]) -> None:
        """Create the folders, and mount the buckets: one without rights on all of it so that access fails."""
        for part in ("home", "tmp", "gcs"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        home = state.path.parent
        for bucket in state.find(type=BUCKET):
            kept = folders.bucket(home, bucket.id, "gs")
            kept.mkdir(parents=True, exist_ok=True)
            may = all(allowed_object(state, members, right, bucket, "") for right in _OPENS)
            target = kept if may else folders.denied(home, bucket.id, "gs")
            (self.folder / "gcs" / bucket.id).symlink_to(target)

    def start(self, around: ReplicaEnvironment, cpus: Sequence[int]) -> None:
        """Start the container's command. Raises CustomJobError when it cannot run here."""
        spec = self._job.spec["workerPoolSpecs"][self._pool]
        container = spec.get("containerSpec") or {}
        here = self.translator({_MOUNT: self.folder / "gcs"}, around.located)
        command_line = command(container)
        given = {str(one["name"]): here(str(one.get("value") or "")) for one in container.get("env") or ()}
        argv = (runnable(container), *(here(word) for word in command_line[1:]))
        machine = str((spec.get("machineSpec") or {}).get("machineType"))
        emulated = machine in facts.machine_types or machine in facts.cpu_types
        added = {**self._service_variables(around), **missing_hardware(emulated=emulated)}
        self.run(argv, {**added, **given}, self._job.id, cpus, GRACE_S)

    def _service_variables(self, around: ReplicaEnvironment) -> dict[str, str]:
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
        }

    def _cluster(self) -> dict[str, Any]:
        """CLUSTER_SPEC, with addresses: names of machines do not resolve here."""
        pools: dict[str, list[str]] = {}
        for name, (pool, _) in self._job.replicas.items():
            pools.setdefault(f"workerpool{pool}", []).append(f"{self.addresses[name]}:{_PORT}")
        task = {"type": f"workerpool{self._pool}", "index": self._index}
        return {"cluster": pools, "environment": "cloud", "task": task, "job": self._job.spec}

    def _tensorflow(self) -> dict[str, str]:
        """TF_CONFIG; absent for jobs of one replica."""
        if len(self._job.replicas) == 1:
            return {}
        cluster: dict[str, list[str]] = {}
        for name, (pool, _) in self._job.replicas.items():
            if pool < len(_TASKS):
                cluster.setdefault(_TASKS[pool], []).append(f"{self.addresses[name]}:{_PORT}")
        kind = _TASKS[self._pool] if self._pool < len(_TASKS) else "evaluator"
        config = {"cluster": cluster, "task": {"type": kind, "index": self._index}, "environment": "cloud"}
        return {"TF_CONFIG": json.dumps({**config, "job": self._job.spec})}

    def _directories(self) -> dict[str, str]:
        """AIP_*; absent for jobs without a base directory."""
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
    """The local program for a container's command. Raises CustomJobError without one."""
    try:
        return program([str(word) for word in container.get("command") or ()])
    except LookupError as error:
        raise CustomJobError(JobFailure(INVALID, str(error.args[0]))) from None
