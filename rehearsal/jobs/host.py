"""One machine of a job: its folders, what the service puts there, and the process of the container.

Source: SageMaker Developer Guide, "How Amazon SageMaker Provides Training Information" (files below
/opt/ml/input/config, environment variables) and "How Amazon SageMaker Runs Your Training Image".
"""

import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.catalog.aws import facts
from rehearsal.dataplane.identity import TOKEN_VARIABLE
from rehearsal.jobs.channels import mode_of
from rehearsal.jobs.records import JobRecord
from rehearsal.jobs.words import JobFailed
from rehearsal.workloads.process import ContainerProcess
from rehearsal.workloads.rewriting import Host as Place
from rehearsal.workloads.rewriting import World, rewrite
from rehearsal.workloads.translate import ALL_ADDRESSES, INTERFACES, Plan, clean_start, port_of_run

ML = "/opt/ml"
CHECKPOINTS = "/opt/ml/checkpoints"  # source: botocore 1.44.5, CheckpointConfig$LocalPath
_SHELL, _PYTHON = re.compile(r"(/usr)?(/bin/)?(bash|sh)"), re.compile(r"(.*/)?python3?(\.\d+)?")
# SIGTERM, then 120 s (botocore 1.44.5, StopTrainingJob); a rehearsal waits a tenth of it.
GRACE_S = 12.0
# Where the machines of a job meet: here all jobs share the ports of one machine.
_PORTS = ("MASTER_PORT", "PET_MASTER_PORT", "TRAINSTACK_MASTER_PORT")


@dataclass(frozen=True)
class Surroundings:
    """What a machine finds around it: the services' address and the token of the job's role.

    `located` replaces ARNs of services that run here by where they answer.
    """

    url: str
    credentials: str
    token: Path
    located: Callable[[str], str]


class Host:
    """A machine of a job; `addresses` are those of all its machines by name."""

    def __init__(self, job: JobRecord, name: str, folder: Path, addresses: Mapping[str, str]) -> None:
        self.job, self.name, self.folder = job, name, folder
        self.address = addresses[name]
        self._addresses = dict(addresses)
        self.ml, self.log = folder / "ml", folder / "log"
        local = (job.request.get("CheckpointConfig") or {}).get("LocalPath") or CHECKPOINTS
        self.checkpoints = self._place(str(local))
        self.process: ContainerProcess | None = None

    def prepare(self) -> None:
        """Make the folders and the files that tell the program about its job."""
        config, request = self.ml / "input" / "config", self.job.request
        for part in (
            "home",
            "tmp",
            "ml/model",
            "ml/output/data",
            "ml/input/config",
            "ml/input/data",
            "ml/code",
        ):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        channels = {
            str(channel["ChannelName"]): {
                "TrainingInputMode": mode_of(channel, request),
                "S3DistributionType": (channel["DataSource"].get("S3DataSource") or {}).get(
                    "S3DataDistributionType", "FullyReplicated"
                ),
                "RecordWrapperType": channel.get("RecordWrapperType", "None"),
                **({"ContentType": channel["ContentType"]} if channel.get("ContentType") else {}),
            }
            for channel in request.get("InputDataConfig") or ()
        }
        for name in channels:
            self.channel(name).mkdir()
        files = {
            "hyperparameters": request.get("HyperParameters") or {},
            "inputdataconfig": channels,
            "resourceconfig": self._resources(),
        }
        for name, content in files.items():
            (config / f"{name}.json").write_text(json.dumps(content))

    def channel(self, name: str) -> Path:
        """Where the files of a channel go."""
        return self.ml / "input" / "data" / name

    def start(self, around: Surroundings, cpus: Sequence[int]) -> None:
        """Start the container's command. Raises JobFailed when it cannot run here."""
        here = self._translator(around.located)
        words = command(self.job.request)
        environment = {
            name: here(str(value)) for name, value in (self.job.request.get("Environment") or {}).items()
        }
        argv = (program(words[0]), *(here(word) for word in words[1:]))
        meeting = dict.fromkeys(_PORTS, port_of_run(self.job.arn))
        env = {**self._base(around), **environment, **dict.fromkeys(INTERFACES, "lo"), **meeting}
        plan = Plan(argv=argv, env=env, cwd=self.folder / "home")
        self.process = ContainerProcess(plan, self.log, cpus, GRACE_S)

    def exit_code(self) -> int | None:
        """What the command ended with; None while it runs."""
        return self.process.exit_code() if self.process else None

    def said(self) -> str:
        """What the program wrote about its failure."""
        file = self.ml / "output" / "failure"
        return file.read_text(errors="replace")[:1024].strip() if file.is_file() else ""

    def kill(self) -> None:
        """End everything that runs on it."""
        if self.process is not None:
            self.process.kill()

    def describe(self) -> dict[str, Any]:
        """A row for people, of the form of a pod's."""
        process = self.process
        supervisors = [process.supervisor_pid] if process and process.exit_code() is None else []
        return {
            "pod": self.name,
            "address": self.address,
            "pids": supervisors + (process.pids() if process else []),
            "log": str(self.log),
        }

    def _resources(self) -> dict[str, Any]:
        """resourceconfig.json; names of machines would lead nowhere here, their addresses do."""
        kind = str((self.job.request.get("ResourceConfig") or {}).get("InstanceType"))
        hosts = sorted(self._addresses.values())
        group = {"instance_group_name": "homogeneousCluster", "instance_type": kind, "hosts": hosts}
        return {
            "current_host": self.address,
            "current_instance_type": kind,
            "current_group_name": "homogeneousCluster",
            "hosts": hosts,
            "instance_groups": [group],
            "network_interface_name": "lo",
        }

    def _translator(self, located: Callable[[str], str]) -> Callable[[str], str]:
        """What makes text of the request mean the same on this machine.

        URIs of buckets stay as they are: S3 answers the job's own requests, with its role's rights.
        """
        space = "job"
        paths = {ML: self.ml, "/tmp": self.folder / "tmp"}  # noqa: S108 - a path in the container
        local = str((self.job.request.get("CheckpointConfig") or {}).get("LocalPath") or CHECKPOINTS)
        paths[local.rstrip("/")] = self.checkpoints
        hosts = {f"{name}.{space}.svc.cluster.local": Place(at) for name, at in self._addresses.items()}
        world = World(space, paths, hosts)

        def here(text: str) -> str:
            return self.address if text == ALL_ADDRESSES else located(rewrite(text, world))

        return here

    def _base(self, around: Surroundings) -> dict[str, str]:
        """A clean start, and what the service adds to the environment of a request."""
        job = self.job
        return {
            **clean_start(self.folder, self.name),
            # Where /opt/ml is here, in the words of SageMaker's own toolkit
            # (aws/sagemaker-training-toolkit, src/sagemaker_training/environment.py).
            "SAGEMAKER_BASE_DIR": str(self.ml),
            "TRAINING_JOB_NAME": job.name,
            "TRAINING_JOB_ARN": job.arn,
            "AWS_REGION": job.region,
            "AWS_DEFAULT_REGION": job.region,
            "AWS_ENDPOINT_URL": around.url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": around.credentials,
            TOKEN_VARIABLE: str(around.token),
            **_missing_hardware(job.request),
        }

    def _place(self, path: str) -> Path:
        """A folder of the container on this disk."""
        inside = path.rstrip("/")
        if inside == ML or inside.startswith(f"{ML}/"):
            return self.ml / inside[len(ML) :].lstrip("/")
        return self.folder / "root" / inside.lstrip("/")


def _missing_hardware(request: Mapping[str, Any]) -> dict[str, str]:
    """Makes a validation believe that its machine has no GPUs, as its result then says; pods get the same."""
    kind = str((request.get("ResourceConfig") or {}).get("InstanceType")).removeprefix("ml.")
    emulated = kind in facts.instance_types and not Path("/dev/nvidia0").exists()
    return {"SMOKE_DEVICE": "cpu"} if emulated else {}


def command(request: Mapping[str, Any]) -> list[str]:
    """The command of the container. Raises JobFailed when it is the image's own: no image is here."""
    algorithm = request.get("AlgorithmSpecification") or {}
    words = [str(word) for word in algorithm.get("ContainerEntrypoint") or ()]
    if not words or not (_SHELL.fullmatch(words[0]) or _PYTHON.fullmatch(words[0])):
        what = words[0] if words else "the entrypoint of its image"
        raise JobFailed(
            f"ClientError: the rehearsal cannot run {what}: it has no images. "
            "Jobs whose ContainerEntrypoint begins with bash or python really run."
        )
    return words + [str(word) for word in algorithm.get("ContainerArguments") or ()]


def program(word: str) -> str:
    """The program of this machine for the first word of a command. Raises JobFailed without one."""
    if _PYTHON.fullmatch(word):
        return sys.executable
    found = shutil.which(word.rpartition("/")[2])
    if found is None:
        raise JobFailed(f"ClientError: this machine has no {word}, with which the job's command begins")
    return found
