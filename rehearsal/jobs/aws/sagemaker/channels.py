"""Input channels: the objects of a job's inputs, downloaded to its hosts before the program starts.

Source: SageMaker API Reference, DataSource and S3DataSource (prefixes, ShardedByS3Key); Developer Guide,
"Access Training Data" (File mode). FastFile mode shows the same files, so it is downloaded as well.
"""

import gzip
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal.dataplane.aws.http import ServiceError
from rehearsal.dataplane.aws.s3.objects import Objects, uri
from rehearsal.dataplane.object_files import Found
from rehearsal.jobs.aws.sagemaker.failures import TrainingJobError, no_download


def mode_of(channel: Mapping[str, Any], request: Mapping[str, Any]) -> str:
    """Input mode of a channel: its own, or that of the job."""
    of_job = (request.get("AlgorithmSpecification") or {}).get("TrainingInputMode")
    return str(channel.get("InputMode") or of_job or "File")


def download(objects: Objects, channel: Mapping[str, Any], folders: Sequence[Path], mode: str) -> None:
    """Copy the objects of a channel to every host, or distribute them among hosts.

    Raises TrainingJobError when they cannot be read or do not exist.
    """
    if mode == "Pipe":
        raise TrainingJobError(
            "ClientError: a rehearsal reads channels in File or FastFile mode, not in Pipe mode"
        )
    source = (channel.get("DataSource") or {}).get("S3DataSource") or {}
    place = str(source.get("S3Uri") or "")
    try:
        found = list(_wanted(objects, place, str(source.get("S3DataType"))))
        if not found:
            text = "No S3 objects found under S3 URL"
            raise TrainingJobError(
                f'ClientError: Data download failed:{text} "{place}" given in input data source.'
            )
        sharded = source.get("S3DataDistributionType") == "ShardedByS3Key"
        for index, (one, name) in enumerate(found):
            bucket, _ = uri(place)
            content = objects.get(bucket, one.key).path
            for folder in [folders[index % len(folders)]] if sharded else folders:
                _copy(content, folder / name, gzipped=channel.get("CompressionType") == "Gzip")
    except ServiceError as error:
        raise no_download(place, error) from None


def _wanted(objects: Objects, place: str, kind: str) -> Iterator[tuple[Found, str]]:
    """Objects with their paths below the channel's folder."""
    if kind not in ("S3Prefix", "None"):
        raise TrainingJobError(
            f"ClientError: a rehearsal reads channels of S3DataType S3Prefix only, not {kind}"
        )
    bucket, prefix = uri(place)
    for one in objects.list(bucket, prefix):
        yield one, _name(one.key, prefix)


def _name(key: str, prefix: str) -> str:
    """A key without the prefix's folders: `a/b` of `a/b/c` and `a/b/`, `b.csv` of `a/b`."""
    if prefix and not prefix.endswith("/") and key.startswith(f"{prefix}/"):
        return key[len(prefix) + 1 :]
    return key[prefix.rfind("/") + 1 :]


def _copy(source: Path, target: Path, *, gzipped: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not gzipped:
        shutil.copyfile(source, target)
        return
    with gzip.open(source) as packed, target.with_suffix("").open("wb") as file:
        shutil.copyfileobj(packed, file)
