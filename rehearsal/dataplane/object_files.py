"""Objects of emulated buckets as files below the bucket's folder, whichever cloud the bucket is of."""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_LONGEST_NAME = 255  # bytes of one part of a path on this disk


class UnkeepableError(Exception):
    """An object that cannot be a file here."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"A rehearsal keeps objects as files, and {key!r} cannot be one beside those that are there."
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
        """The MD5 of the content, as S3 has it of what was uploaded in one part."""
        return _digest(self.path)


def listed(folder: Path, prefix: str = "") -> list[Found]:
    """The objects whose key begins with `prefix`, in the order of the bytes of their keys."""
    above = prefix.rpartition("/")[0]
    start = folder / above if is_plain(above) else folder
    keys = [str(path.relative_to(folder)) for path in _files(start)]
    wanted = sorted((key for key in keys if key.startswith(prefix)), key=os.fsencode)
    return [one for key in wanted if (one := found(folder, key))]


def found(folder: Path, key: str) -> Found | None:
    """One object, None when there is none."""
    if not is_plain(key):
        return None
    path = folder / key
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):  # written by a program that removed it meanwhile
        return None
    if not path.is_file():
        return None
    modified = datetime.fromtimestamp(status.st_mtime, UTC)
    return Found(key, path, status.st_size, modified)


def keep(folder: Path, key: str, draft: Path) -> Found:
    """Make a file that is complete the object with this key. Raises UnkeepableError."""
    target = folder / key
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(target)
    except OSError:  # a file where a folder would have to be, or a folder where the file would be
        raise UnkeepableError(key) from None
    kept = found(folder, key)
    assert kept is not None
    return kept


@contextlib.contextmanager
def draft(home: Path) -> Iterator[Path]:
    """A file beside the buckets for an object to be; what is left of it at the end is removed."""
    path = home / "object-drafts" / secrets.token_hex(8)
    path.parent.mkdir(exist_ok=True)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def delete(folder: Path, key: str) -> None:
    """Delete one object; silent when there is none."""
    if not is_plain(key):
        return
    with contextlib.suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
        (folder / key).unlink()
    for parent in (folder / key).parents:  # a folder is no object: an empty one is nothing
        if parent == folder:
            return
        try:
            parent.rmdir()
        except OSError:
            return


def is_plain(key: str) -> bool:
    """Whether a key is a path of files here: no part is empty, and none means another folder."""
    parts = key.split("/")
    return (
        not any(part in ("", ".", "..") or len(part.encode()) > _LONGEST_NAME for part in parts)
        and "\0" not in key
    )


def common_prefixes(
    objects: Iterable[Found], prefix: str, delimiter: str
) -> tuple[list[Found], Sequence[str]]:
    """The objects directly below a prefix, and the prefixes under which the others lie."""
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
    """The MD5 of a file, computed once for each of its contents."""
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
