"""Opens files below a folder without following a link, also one that replaces a file or folder meanwhile.

Other users may write into a shared folder: a link to a private file of the person who packs must not be read.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from infra.jobs.packing.names import bytes_of

_BLOCK = 1 << 20
# Without O_NONBLOCK, opening a FIFO that has replaced a file waits for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


class FileState(NamedTuple):
    """Identity and state of a file: any change between listing and reading shows."""

    device: int
    inode: int
    size: int
    changed_ns: int
    executable: bool


class FileChangedError(Exception):
    """A file that changed after it was listed."""


def state_of(status: os.stat_result) -> FileState:
    """The state in the result of `stat`."""
    executable = bool(status.st_mode & stat.S_IXUSR)
    return FileState(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, executable)


@contextmanager
def opened_folder(name: bytes, above: int | None = None) -> Iterator[int]:
    """A descriptor of a folder, for the block; `above` is that of the folder which has it.

    Only the first folder of a path may be a link: its user has named it.
    """
    flags = _FOLDER if above is not None else _FOLDER & ~os.O_NOFOLLOW
    descriptor = os.open(name, flags, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_file(name: bytes, above: int, most: int) -> tuple[bytes, FileState] | None:
    """At most `most` + 1 bytes of a regular file in the folder `above`, and its state; None for another kind.

    Raises FileChangedError for a file that changes meanwhile, OSError for one that cannot be opened.
    """
    descriptor = os.open(name, _FILE, dir_fd=above)
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        content = bytearray()
        while len(content) <= most and (block := file.read(min(_BLOCK, most + 1 - len(content)))):
            content += block
        if state_of(os.fstat(descriptor)) != state_of(before):
            raise FileChangedError
        return bytes(content), state_of(before)


def read_listed(root: int, path: str, listed: FileState) -> bytes:
    """The content of a listed file below the folder `root`, in the state in which it was listed.

    Raises FileChangedError, and OSError for a file that cannot be opened.
    """
    *folders, name = bytes_of(path).split(b"/")
    try:
        found = _below(root, folders, name, listed.size)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileChangedError from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise FileChangedError from error
        raise
    if found is None or found[1] != listed or len(found[0]) != listed.size:
        raise FileChangedError
    return found[0]


def _below(root: int, folders: list[bytes], name: bytes, most: int) -> tuple[bytes, FileState] | None:
    if not folders:
        return read_file(name, root, most)
    with opened_folder(folders[0], root) as inner:
        return _below(inner, folders[1:], name, most)
