"""Folders of a job of Vertex AI: local ones, copied from and to buckets.

The service mounts buckets at /gcs with Cloud Storage FUSE, for accounts that may list the whole bucket: it
opens one by GetStorageLayout or objects.list without a prefix, and reads every folder above a file (gcsfuse
7b392927, internal/storage/storage_handle.go lookupBucketType and verifyNonHNSBucketAccess,
internal/fs/inode/dir.go findExplicitInode; pull request 4980 for `--only-dir`, which /gcs has not). A role on
a managed folder permits neither; it permits reads, writes and lists with its prefix by the JSON API.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from agents.managed_job.folders import Folders
from agents.managed_job.gcp import node
from agents.managed_job.gcp.mirror import BucketMirror
from smoke_training.reader import DocumentError

CHECKPOINTS, DATA = "TRAINSTACK_CHECKPOINT_URI", "TRAINSTACK_DATA_URI"  # gs://...
EVERY_S = 10.0
"""Interval of copies to the buckets while a job runs."""
LAST_TRIES, AGAIN_S = 5, 2.0
"""Copies at the end of files that still change, and the time between them."""


def local() -> Folders:
    """Return the folders, on the machine's own disk."""
    base = Path(tempfile.gettempdir()) / "trainstack" / "job"
    return Folders(
        data=base / "data",
        checkpoints=base / "checkpoints",
        model=base / "outputs" / "model",
        output=base / "outputs" / "output",
        failure=base / "outputs" / "failure",  # for users: the service reads none
        scratch=base / "scratch",
        shared=False,
        resources=base / "resourceconfig.json",
    )


class BucketFolders:
    """Copies the folders of a job: data and checkpoints at its start, checkpoints and outputs until its end.

    Where an URI is missing, that folder is only local. Source: Vertex AI documentation, "Environment
    variables for special Cloud Storage directories" (AIP_*: only with baseOutputDirectory).
    """

    def __init__(self, environment: Mapping[str, str], folders: Folders, say: Callable[[str], None]) -> None:
        self._environment, self._folders, self._say = environment, folders, say
        uris = {
            "data": environment.get(DATA),
            "checkpoints": environment.get(CHECKPOINTS) or environment.get("AIP_CHECKPOINT_DIR"),
            "outputs": (environment.get("AIP_MODEL_DIR") or "").rstrip("/").rpartition("/")[0],
        }
        where = {"data": folders.data, "checkpoints": folders.checkpoints, "outputs": folders.model.parent}
        self._mirrors = {what: BucketMirror(uri, where[what]) for what, uri in uris.items() if uri}
        self._kept = [one for what, one in self._mirrors.items() if what != "data"]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="job-folders", daemon=True)

    def __enter__(self) -> Self:
        return self

    def restore(self) -> None:
        """Copy data and checkpoints to this node. Raises DocumentError."""
        first = node.find(self._environment).index == 0
        try:
            for what in ("data", "checkpoints"):
                if (mirror := self._mirrors.get(what)) and not mirror.restore() and what == "data":
                    raise OSError(f"{mirror.uri} has no objects, or is not a folder")
            if first and (outputs := self._mirrors.get("outputs")):
                outputs.drop(self._folders.failure.name)  # from an earlier attempt
        except OSError as error:
            raise DocumentError([str(error)]) from error
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Store what is left. Raises DocumentError, unless the job has failed already."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        problems = []
        for mirror in self._kept:
            try:
                self._save_all(mirror)
            except OSError as failed:
                problems.append(f"not stored in {mirror.uri}: {failed}")
        for text in problems:
            self._say(text)
        if problems and error is None:
            raise DocumentError(problems)

    def _save_all(self, mirror: BucketMirror) -> None:
        """Store all files. A process that outlives the job and writes on does not fail what has finished."""
        for left in reversed(range(LAST_TRIES)):
            if not (rewritten := mirror.save(all_of_it=True)):
                return
            if left:
                time.sleep(AGAIN_S)
        self._say(f"still written while it was stored in {mirror.uri}: {', '.join(rewritten)}")

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            for mirror in self._kept:
                try:
                    mirror.save(all_of_it=False)
                except OSError as error:  # the next time may succeed; the last one counts
                    self._say(f"not stored yet in {mirror.uri}: {error}")
