"""Copy the result to a bucket, for users without access to the pods' volume."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from smoke_training import files
from smoke_training.record import run_record
from smoke_training.record.aws import api as aws
from smoke_training.record.gcp import api as gcp

_PUT: Mapping[str, Callable[[str, bytes, float], None]] = {"s3": aws.put_object, "gs": gcp.put_object}
# A token, and then one request for each file, twice at most.
_PATIENCE_S = 10.0


def send(folder: str, result: Path | None, until: float) -> dict[str, object]:
    """Copy the result at `result`, its baseline and its summary to `<folder>/<name of the run>/`.

    `folder` is that of all results: `s3://bucket/folder`, `gs://bucket/folder`, or `file:///folder`.

    Returns the copy's location, or the reason if there is none: a copy never changes a verdict. `until` is
    in monotonic seconds; `result` is None where no result could be written.
    """
    if result is None:
        return _outcome(None, "there is no result to copy")
    place = f"{folder.rstrip('/')}/{result.parent.name}"
    paths = [result, *(run_record.beside(result, name) for name in (run_record.BASELINE, run_record.SUMMARY))]
    try:
        for path in paths:
            if path.exists():
                _write(f"{place}/{path.name}", path.read_bytes(), min(_PATIENCE_S, until - time.monotonic()))
    except Exception as error:  # boto3 creates its exception classes at run time
        return _outcome(None, f"{type(error).__name__}: {error}"[:500])
    return _outcome(f"{place}/{result.name}", None)


def _outcome(copy: str | None, reason: str | None) -> dict[str, object]:
    return {"copied": reason is None, "copy": copy, "reason": reason}


def _write(uri: str, content: bytes, seconds: float) -> None:
    """Raises OSError or boto3's exceptions, and ValueError or KeyError for a malformed response or URI."""
    place = urlsplit(uri)
    if seconds <= 0:
        raise TimeoutError("no time left for the copy")
    if place.scheme == "file":
        target = Path(url2pathname(place.path))
        target.parent.mkdir(parents=True, exist_ok=True)
        files.write_durably(target, content)
    elif (put := _PUT.get(place.scheme)) is not None:
        put(uri, content, seconds)
    else:
        raise ValueError(f"{uri} is neither in S3, nor in Cloud Storage, nor a file")
