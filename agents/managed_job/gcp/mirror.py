"""A local folder and its objects in a bucket, kept the same as SageMaker does it."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from agents.managed_job.gcp.objects import Bucket, ObjectError, StoredObject

AT_ONCE = 8
SETTLED_S = 5.0
"""Age of a file's last change before it is stored while the job runs: younger ones may be incomplete."""
SMALL_BYTES = 1 << 20
_PART = ".trainstack-part"
_INCOMPLETE = (-1, 0)
"""Size and time of an object that is to be stored again."""


class BucketMirror:
    """Copies a folder from and to `gs://bucket/prefix/`. Methods raise OSError."""

    def __init__(self, uri: str, folder: Path) -> None:
        place = urlsplit(uri)
        self.uri, self.folder = uri, folder
        self._prefix = f"{place.path.strip('/')}/"
        self._bucket = Bucket(place.netloc)
        self._seen: dict[str, tuple[int, int]] = {}

    def restore(self) -> int:
        """Replace the folder by the objects; returns their number."""
        found = [one for one in self._bucket.listed(self._prefix) if not one.name.endswith("/")]
        # A worker that restarts on its machine finds files that are newer than what the others find.
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        wanted, free = sum(one.size for one in found), shutil.disk_usage(self.folder).free
        if wanted > free:
            have = f"{free / 2**30:.1f} GiB are free on the disk"
            raise OSError(f"{self.uri} has {wanted / 2**30:.1f} GiB, and {have}")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            _done(pool.submit(self._bring, one) for one in found)
        return len(found)

    def save(self, *, all_of_it: bool) -> list[str]:
        """Store new and changed files, oldest first, then delete objects whose file is gone.

        Returns the files that a script rewrote meanwhile, whose objects may be incomplete. Files that are
        deleted meanwhile are left out. A small file is stored after all older ones: a commit mark never comes
        before its checkpoint. Without `all_of_it`, files that changed just now wait for the next time, as
        does a small one after an older one that was rewritten.
        """
        now = time.time()
        there = dict(sorted(self._files(), key=lambda one: one[1][1]))
        young = {name for name, (_, at) in there.items() if not all_of_it and now - at / 1e9 < SETTLED_S}
        rewritten: list[str] = []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            begun: list[Future[str | None]] = []
            for name, found in there.items():
                if name in young or self._seen.get(name) == found:
                    continue
                if found[0] < SMALL_BYTES:
                    rewritten += _done(begun)
                    begun.clear()
                    if rewritten and not all_of_it:
                        break
                begun.append(pool.submit(self._keep, name, found))
            rewritten += _done(begun)
        for name in sorted(set(self._seen) - set(there), key=lambda one: -self._seen[one][1]):
            self.drop(name)
        return rewritten

    def drop(self, name: str) -> None:
        """Delete the object of a file."""
        self._bucket.delete(self._prefix + name)
        self._seen.pop(name, None)

    def _bring(self, found: StoredObject) -> None:
        name = found.name.removeprefix(self._prefix)
        if ".." in PurePosixPath(name).parts or name.startswith("/"):
            raise ObjectError(f"{self.uri}/{name}", 0, "the name leads out of the folder")
        path = self.folder / name
        self._bucket.read(found, path)
        state = path.stat()
        self._seen[name] = (state.st_size, state.st_mtime_ns)

    def _keep(self, name: str, state: tuple[int, int]) -> str | None:
        """Store a file; returns its name where it was rewritten meanwhile."""
        try:
            whole = self._bucket.write(self.folder / name, self._prefix + name)
        except FileNotFoundError:  # the next time deletes its object, if there is one
            return None
        self._seen[name] = state if whole else _INCOMPLETE
        return None if whole else name

    def _files(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Name of each file, with size and time of its last change."""
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = Path(folder) / name
                if name.endswith(_PART) or not path.is_file():
                    continue
                with contextlib.suppress(FileNotFoundError):
                    found = path.stat()
                    yield path.relative_to(self.folder).as_posix(), (found.st_size, found.st_mtime_ns)


def _done(begun: Iterable[Future[str | None]]) -> list[str]:
    """Wait for all; raise the first error. Returns the names of their results."""
    return [name for one in list(begun) if (name := one.result())]
