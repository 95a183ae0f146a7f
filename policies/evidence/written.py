"""Writes a bundle as a folder or as one file, whole or not at all, and never over another one."""

import contextlib
import shutil
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path

from infra.errors import Problem, UserError

_FIX = "Name a folder, or a file that ends with .zip, that is not there yet."
# The earliest that the format knows: the time of an audit is in evidence.json.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_PLAIN_FILE = 0o100644 << 16


def refuse_taken(path: Path) -> None:
    """Raise UserError where something is already, or where nothing can be made."""
    if path.exists() or path.is_symlink():
        raise _refused(path, "is there already, and evidence is never written over")
    if not path.parent.is_dir():
        raise _refused(path, f"cannot be made: {path.parent} is no folder")


def write(path: Path, files: Mapping[str, bytes]) -> None:
    """Write all files, in a ZIP file where the name says so. Raises UserError."""
    refuse_taken(path)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        if path.suffix == ".zip":
            _pack(beside, files)
        else:
            beside.mkdir()
            for name, content in files.items():
                (beside / name).write_bytes(content)
        beside.rename(path)
    except OSError as error:
        raise _refused(path, f"cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        with contextlib.suppress(OSError):
            beside.unlink()


def _pack(path: Path, files: Mapping[str, bytes]) -> None:
    """Not compressed: what a compressor makes of the same bytes depends on its version."""
    with zipfile.ZipFile(path, "x", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system, entry.external_attr = 3, _PLAIN_FILE
            archive.writestr(entry, content)


def _refused(path: Path, rule: str) -> UserError:
    return UserError([Problem(f"--evidence {path}", None, rule, _FIX)])
