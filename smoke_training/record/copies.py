"""Copy the result to a bucket, for users without access to the pods' volume."""

import os
import time
from pathlib import Path
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from smoke_training.record import amazon, book, google
from smoke_training.runtime import files

_STORAGE = "https://storage.googleapis.com"
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
    paths = [result, *(book.beside(result, name) for name in (book.BASELINE, book.SUMMARY))]
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
    elif place.scheme == "gs":
        _upload(place.netloc, place.path.lstrip("/"), content, seconds)
    elif place.scheme == "s3":
        amazon.put_object(uri, content, seconds)
    else:
        raise ValueError(f"{uri} is neither in S3, nor in Cloud Storage, nor a file")


def _upload(bucket: str, name: str, content: bytes, seconds: float) -> None:
    """Upload one object, in one request (Cloud Storage JSON API v1, `objects.insert`, `uploadType=media`)."""
    patience = seconds / (google.ATTEMPTS * 2)
    # Google's own library reads another address from it.
    api = os.environ.get("STORAGE_EMULATOR_HOST") or _STORAGE
    query = f"uploadType=media&name={quote(name, safe='')}"
    headers = {**google.authorization(patience), "Content-Type": "application/octet-stream"}
    google.asked(f"{api.rstrip('/')}/upload/storage/v1/b/{bucket}/o?{query}", headers, content, patience)
