"""Outputs of a training job: /opt/ml/model and /opt/ml/output/data of its hosts, packed and uploaded.

Source: SageMaker Developer Guide, "Amazon SageMaker Training Storage Folders" (the files of all hosts in one
archive; of files with the same name the last one stays); API Reference, OutputDataConfig (CompressionType,
KmsKeyId).
"""

import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal.core.state import State
from rehearsal.dataplane.aws.authorization import authorise, key_checks
from rehearsal.dataplane.aws.http import ServiceError
from rehearsal.dataplane.aws.identity import Caller
from rehearsal.dataplane.aws.s3.objects import Objects, uri
from rehearsal.jobs.aws.sagemaker.failures import no_upload

_FOLDERS = {"model": "model", "output": "output/data"}


def place_of(request: Mapping[str, Any], name: str) -> str:
    """URI prefix of a job's outputs."""
    start = str((request.get("OutputDataConfig") or {}).get("S3OutputPath") or "").rstrip("/")
    return f"{start}/{name}/output"


def artifact_of(request: Mapping[str, Any], name: str) -> str:
    """URI of a job's model."""
    plain = (request.get("OutputDataConfig") or {}).get("CompressionType") == "NONE"
    return f"{place_of(request, name)}/{'model/' if plain else 'model.tar.gz'}"


def upload(objects: Objects, request: Mapping[str, Any], name: str, hosts: Sequence[Path]) -> None:
    """Upload the outputs of a job from its hosts' `/opt/ml` folders; empty ones are skipped.

    Raises TrainingJobError without the rights.
    """
    bucket, prefix = uri(place_of(request, name))
    plain = (request.get("OutputDataConfig") or {}).get("CompressionType") == "NONE"
    for what, folder in _FOLDERS.items():
        files = _files([host / folder for host in hosts])
        if not files:
            continue
        try:
            if plain:
                for inside, path in files.items():
                    with path.open("rb") as file:
                        objects.put(bucket, f"{prefix}/{what}/{inside}", file)
                continue
            with tempfile.TemporaryFile() as packed:
                with tarfile.open(fileobj=packed, mode="w:gz") as archive:
                    for inside, path in files.items():
                        archive.add(path, inside)
                packed.seek(0)
                objects.put(bucket, f"{prefix}/{what}.tar.gz", packed)
        except ServiceError as error:
            raise no_upload(f"{place_of(request, name)}/{what}", error) from None


def check_key(state: State, caller: Caller, region: str, request: Mapping[str, Any], name: str) -> None:
    """Raise TrainingJobError where the role may not encrypt with the key that the job names."""
    key = (request.get("OutputDataConfig") or {}).get("KmsKeyId")
    if key:
        try:
            checks = key_checks(state, str(key), region, "s3", ["kms:GenerateDataKey"])
            authorise(state, caller, checks, "AccessDenied")
        except ServiceError as error:
            raise no_upload(place_of(request, name), error) from None


def _files(folders: Sequence[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                found[str(path.relative_to(folder))] = path
    return found
