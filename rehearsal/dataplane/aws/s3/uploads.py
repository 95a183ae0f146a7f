"""Multipart uploads, which clients use for files of more than a few megabytes.

Source: Amazon S3 API Reference, CreateMultipartUpload, UploadPart, CompleteMultipartUpload and
AbortMultipartUpload. Parts lie beside the buckets until the upload is completed or aborted.
"""

import hashlib
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from rehearsal.dataplane import folders
from rehearsal.dataplane.aws.http import Readable, Response, ServiceError
from rehearsal.dataplane.aws.s3 import xml
from rehearsal.dataplane.aws.s3.checksums import Checked
from rehearsal.dataplane.aws.s3.objects import Objects


class Uploads:
    """The multipart uploads of a rehearsal in progress."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "s3-uploads"

    def create(self, objects: Objects, bucket: str, key: str) -> Response:
        """Create an upload."""
        objects.place(bucket, key)
        upload = secrets.token_hex(16)
        (self._folder / upload).mkdir(parents=True)
        rows = [("Bucket", bucket), ("Key", key), ("UploadId", upload)]
        return xml.document("InitiateMultipartUploadResult", rows)

    def part(
        self, objects: Objects, bucket: str, key: str, query: Mapping[str, str], body: Checked
    ) -> Response:
        """Store one part."""
        objects.place(bucket, key)
        target = self._of(query["uploadId"]) / str(int(query["partNumber"]))
        draft = target.with_suffix(f".{secrets.token_hex(4)}")
        _write(draft, body)
        try:
            sums = body.compare()
        except ServiceError:
            draft.unlink()
            raise
        draft.replace(target)
        return Response(200, headers={"ETag": f'"{_md5(target).hex()}"', **sums})

    def complete(self, objects: Objects, bucket: str, key: str, upload: str, numbers: list[str]) -> Response:
        """Join the parts of these numbers to the object."""
        folder = objects.place(bucket, key)
        parts = [self._of(upload) / str(int(number)) for number in numbers]
        if not parts or not all(part.exists() for part in parts):
            message = "One or more of the specified parts could not be found."
            raise ServiceError("InvalidPart", message)
        digests = b"".join(_md5(part) for part in parts)
        with objects.draft() as draft:
            with draft.open("wb") as file:
                for part in parts:
                    with part.open("rb") as source:
                        shutil.copyfileobj(source, file, 1 << 20)
            objects.keep(folder, key, draft)
        folders.remove(self._of(upload))
        etag = f'"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"'
        rows = [("Bucket", bucket), ("Key", key), ("ETag", etag)]
        return xml.document("CompleteMultipartUploadResult", rows)

    def abort(self, objects: Objects, bucket: str, key: str, upload: str) -> Response:
        """Remove an upload and its parts."""
        objects.authorised(bucket, "s3:AbortMultipartUpload", key)
        folders.remove(self._of(upload))
        return Response(204)

    def _of(self, upload: str) -> Path:
        folder = self._folder / upload
        if not upload.isalnum() or not folder.is_dir():
            raise ServiceError("NoSuchUpload", "The specified upload does not exist.", 404)
        return folder


def _write(path: Path, body: Readable) -> None:
    with path.open("wb") as file:
        shutil.copyfileobj(body, file, 1 << 20)


def _md5(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).digest()
