"""One machine of a training job: folders, files of the service, container process.

Source: SageMaker Developer Guide, "How Amazon SageMaker Provides Training Information" (files below
/opt/ml/input/config, environment variables) and "How Amazon SageMaker Runs Your Training Image".
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.catalog.aws import facts
from rehearsal.dataplane.aws.identity import TOKEN_VARIABLE
from rehearsal.jobs.aws.sagemaker import toolkit
from rehearsal.jobs.aws.sagemaker.channels import mode_of
from rehearsal.jobs.aws.sagemaker.failures import TrainingJobError
from rehearsal.jobs.aws.sagemaker.records import TrainingJobRecord
from rehearsal.jobs.running.machine import MachineProcess, missing_hardware, program
from rehearsal.service_ports import MLFLOW

ML = "/opt/ml"
CHECKPOINTS = "/opt/ml/checkpoints"  # source: botocore 1.44.5, CheckpointConfig$LocalPath
# SIGTERM, then 120 s (botocore 1.44.5, StopTrainingJob); a rehearsal waits a tenth of it.
GRACE_S = 12.0


@dataclass(frozen=True)
class HostEnvironment:
    """Address of the services and token of the job's role, for a machine."""

    url: str
    credentials: str
    token: Path


class TrainingHost(MachineProcess):
    """A machine of a training job; `addresses` maps the names of the job's machines."""

    def __init__(self, job: TrainingJobRecord, name: str, folder: Path, addresses: Mapping[str, str]) -> None:
        super().__init__(name, folder, addresses)
        self.job, self.ml = job, folder / "ml"
        local = (job.request.get("CheckpointConfig") or {}).get("LocalPath") or CHECKPOINTS
        self.checkpoints = self._place(str(local))

    def prepare(self) -> None:
        """Create the folders and the files that describe the job to the program."""
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
        """Folder of a channel's files."""
        return self.ml / "input" / "data" / name

    def start(self, around: HostEnvironment, cpus: Sequence[int]) -> None:
        """Start the container's command. Raises TrainingJobError when it cannot run here."""
        local = str((self.job.request.get("CheckpointConfig") or {}).get("LocalPath") or CHECKPOINTS)
        here = self.translator({ML: self.ml, local.rstrip("/"): self.checkpoints})
        parts = toolkit.command(self.job.request, self.ml) if toolkit.starts(self.job.request) else None
        environment = {
            name: here(str(value)) for name, value in (self.job.request.get("Environment") or {}).items()
        }
        if parts is None:
            given = command(self.job.request)
            parts = [_program(given), *(here(word) for word in given[1:])]
        argv = tuple(parts)
        self.run(argv, {**self._service_variables(around), **environment}, self.job.arn, cpus, GRACE_S)

    def failure_message(self) -> str:
        """Text that the program wrote about its failure."""
        file = self.ml / "output" / "failure"
        return file.read_text(errors="replace")[:1024].strip() if file.is_file() else ""

    def _resources(self) -> dict[str, Any]:
        """resourceconfig.json, with addresses: names of machines do not resolve here."""
        kind = str((self.job.request.get("ResourceConfig") or {}).get("InstanceType"))
        hosts = sorted(self.addresses.values())
        group = {"instance_group_name": "homogeneousCluster", "instance_type": kind, "hosts": hosts}
        return {
            "current_host": self.address,
            "current_instance_type": kind,
            "current_group_name": "homogeneousCluster",
            "hosts": hosts,
            "instance_groups": [group],
            "network_interface_name": "lo",
        }

    def _service_variables(self, around: HostEnvironment) -> dict[str, str]:
        job = self.job
        kind = str((job.request.get("ResourceConfig") or {}).get("InstanceType")).removeprefix("ml.")
        return {
            # The local folder of /opt/ml, in variables of SageMaker's own toolkit
            # (aws/sagemaker-training-toolkit, src/sagemaker_training/environment.py).
            "SAGEMAKER_BASE_DIR": str(self.ml),
            "TRAINING_JOB_NAME": job.name,
            "TRAINING_JOB_ARN": job.arn,
            "AWS_REGION": job.region,
            "AWS_DEFAULT_REGION": job.region,
            "AWS_ENDPOINT_URL": around.url,
            MLFLOW: around.url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": around.credentials,
            TOKEN_VARIABLE: str(around.token),
            **missing_hardware(emulated=kind in facts.instance_types),
        }

    def _place(self, path: str) -> Path:
        inside = path.rstrip("/")
        if inside == ML or inside.startswith(f"{ML}/"):
            return self.ml / inside[len(ML) :].lstrip("/")
        return self.folder / "root" / inside.lstrip("/")


def command(request: Mapping[str, Any]) -> list[str]:
    """The command of the container. Raises TrainingJobError when it is the image's own: no image is here.

    The toolkit's own program (`toolkit.py`) is such an image's command too, but runs here.
    """
    if toolkit.starts(request):
        return []
    algorithm = request.get("AlgorithmSpecification") or {}
    parts = [str(word) for word in algorithm.get("ContainerEntrypoint") or ()]
    _program(parts)
    return parts + [str(word) for word in algorithm.get("ContainerArguments") or ()]


def _program(parts: Sequence[str]) -> str:
    try:
        return program(parts)
    except LookupError as error:
        raise TrainingJobError(f"ClientError: {error.args[0]}") from None
