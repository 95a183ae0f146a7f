"""Objects of emulated buckets as files below the bucket's folder, for buckets of every cloud."""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_LONGEST_NAME = 255  # bytes of one part of a local path


class UnkeepableError(Exception):
    """An object that cannot be stored as a file."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"A rehearsal stores objects as files, and {key!r} conflicts with an existing object."
        )


@dataclass(frozen=True)
class Found:
    """One object; `etag` is the MD5 of its content, without quotes."""

    key: str
    path: Path
    size: int
    modified: datetime

    @property
    def etag(self) -> str:
        """MD5 of the content, as in S3 for an upload in one part."""
        return _digest(self.path)


def listed(folder: Path, prefix: str = "") -> list[Found]:
    """The objects whose key begins with `prefix`, in byte order of their keys."""
    above = prefix.rpartition("/")[0]
    start = folder / above if is_plain(above) else folder
    keys = [str(path.relative_to(folder)) for path in _files(start)]
    wanted = sorted((key for key in keys if key.startswith(prefix)), key=os.fsencode)
    return [one for key in wanted if (one := found(folder, key))]


def found(folder: Path, key: str) -> Found | None:
    """One object, or None."""
    if not is_plain(key):
        return None
    path = folder / key
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):  # a program removed it meanwhile
        return None
    if not path.is_file():
        return None
    modified = datetime.fromtimestamp(status.st_mtime, UTC)
    return Found(key, path, status.st_size, modified)


def keep(folder: Path, key: str, draft: Path) -> Found:
    """Store a complete file as the object with this key. Raises UnkeepableError."""
    target = folder / key
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(target)
    except OSError:  # a file in place of a folder, or a folder in place of the file
        raise UnkeepableError(key) from None
    kept = found(folder, key)
    assert kept is not None
    return kept


@contextlib.contextmanager
def draft(home: Path) -> Iterator[Path]:
    """A temporary file beside the buckets for a new object; removed at the end."""
    path = home / "object-drafts" / secrets.token_hex(8)
    path.parent.mkdir(exist_ok=True)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def delete(folder: Path, key: str) -> None:
    """Delete one object, if present."""
    if not is_plain(key):
        return
    with contextlib.suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
        (folder / key).unlink()
    for parent in (folder / key).parents:  # a folder is no object: remove empty ones
        if parent == folder:
            return
        try:
            parent.rmdir()
        except OSError:
            return


def is_plain(key: str) -> bool:
    """Return whether a key is a local path: no part is empty, `.` or `..`."""
    parts = key.split("/")
    return (
        not any(part in ("", ".", "..") or len(part.encode()) > _LONGEST_NAME for part in parts)
        and "\0" not in key
    )


def common_prefixes(
    objects: Iterable[Found], prefix: str, delimiter: str
) -> tuple[list[Found], Sequence[str]]:
    """The objects directly below a prefix, and the common prefixes of the others."""
    plain, groups = [], dict[str, None]()
    for one in objects:
        rest, separator, _ = one.key[len(prefix) :].partition(delimiter)
        if separator:
            groups[prefix + rest + delimiter] = None
        else:
            plain.append(one)
    return plain, list(groups)


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names)


_digests: dict[tuple[str, int, int, int], str] = {}


def _digest(path: Path) -> str:
    """The MD5 of a file, computed once for each content."""
    status = path.stat()
    known = (str(path), status.st_ino, status.st_mtime_ns, status.st_size)
    if known not in _digests:
        if len(_digests) > 10_000:
            _digests.clear()
        with path.open("rb") as file:
            _digests[known] = hashlib.file_digest(
                file, lambda: hashlib.md5(usedforsecurity=False)
            ).hexdigest()
    return _digests[known]
