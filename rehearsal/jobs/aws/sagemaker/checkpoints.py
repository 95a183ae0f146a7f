"""A job's checkpoint folder and its copy in S3.

Source: SageMaker Developer Guide, "Checkpoints in Amazon SageMaker" (read from S3 when the job starts; what
changes is copied while it runs; what is deleted locally is deleted in S3; all hosts share the prefix).
"""

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from rehearsal.dataplane.aws.http import ServiceError
from rehearsal.dataplane.aws.s3.objects import Objects, uri
from rehearsal.jobs.aws.sagemaker.failures import no_download, no_upload

_Signature = tuple[int, int, int]


class CheckpointSync:
    """Syncs checkpoint folders of a job's hosts with S3. Raises TrainingJobError without rights."""

    def __init__(self, objects: Objects, place: str, folders: Sequence[Path]) -> None:
        self._objects, self._place = objects, place.rstrip("/")
        self._bucket, self._prefix = uri(self._place)
        self._folders = list(folders)
        self._copied: dict[Path, dict[str, _Signature]] = {}
        self._seen: dict[Path, dict[str, _Signature]] = {}

    def download(self) -> None:
        """Copy the prefix's objects to every host."""
        start = f"{self._prefix}/" if self._prefix else ""
        try:
            found = self._objects.list(self._bucket, start)
            for one in found:
                content = self._objects.get(self._bucket, one.key).path
                for folder in self._folders:
                    target = folder / one.key[len(start) :]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(content, target)
        except ServiceError as error:
            raise no_download(self._place, error) from None
        self._copied = {folder: _signatures(folder) for folder in self._folders}
        self._seen = {folder: dict(found) for folder, found in self._copied.items()}

    def copy(self, *, last: bool = False) -> None:
        """Upload what changed; a file that is still being written is skipped except the `last` time."""
        for folder in self._folders:
            now, before, copied = _signatures(folder), self._seen[folder], self._copied[folder]
            for name, signature in now.items():
                if signature != copied.get(name) and (last or signature == before.get(name)):
                    self._upload(folder / name, name)
                    copied[name] = signature
            for name in [name for name in copied if name not in now]:
                self._delete(name)
                del copied[name]
            self._seen[folder] = now

    def _upload(self, file: Path, name: str) -> None:
        # Removed meanwhile by the program: the next copy deletes it.
        with contextlib.suppress(FileNotFoundError), file.open("rb") as content:
            try:
                self._objects.put(self._bucket, self._key(name), content)
            except ServiceError as error:
                raise no_upload(f"{self._place}/{name}", error) from None

    def _delete(self, name: str) -> None:
        try:
            self._objects.delete(self._bucket, self._key(name))
        except ServiceError as error:
            raise no_upload(f"{self._place}/{name}", error) from None

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name


def _signatures(folder: Path) -> dict[str, _Signature]:
    """Every file below a folder, with a signature of its contents."""
    found: dict[str, _Signature] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                path = Path(parent, name)
                status = path.stat()
                found[str(path.relative_to(folder))] = (status.st_ino, status.st_mtime_ns, status.st_size)
    return found
