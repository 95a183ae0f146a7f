"""Write a bundle atomically, as a folder or as a ZIP file, and never over an existing one."""

import contextlib
import shutil
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path

from infra.errors import Problem, UserError

_FIX = "Name a new folder, or a new file that ends with .zip."
# The earliest time of the format: the time of an audit is in evidence.json.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_PLAIN_FILE = 0o100644 << 16


def check_new(path: Path, option: str = "--evidence") -> None:
    """Raise UserError if the path, the value of an option, exists or cannot be created."""
    if path.exists() or path.is_symlink():
        raise _error(option, path, "exists, and is never overwritten", "evidence-path-exists")
    if not path.parent.is_dir():
        raise _error(
            option, path, f"cannot be created: {path.parent} is no folder", "evidence-folder-missing"
        )


def write(path: Path, files: Mapping[str, bytes], option: str = "--evidence") -> None:
    """Write all files, into a ZIP file if the name ends with .zip. Raises UserError."""
    check_new(path, option)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        if path.suffix == ".zip":
            _pack(beside, files)
        else:
            beside.mkdir()
            for name, content in files.items():
                (beside / name).parent.mkdir(parents=True, exist_ok=True)
                (beside / name).write_bytes(content)
        beside.rename(path)
    except OSError as error:
        raise _error(option, path, f"cannot be written: {error.strerror}", "evidence-unwritable") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        with contextlib.suppress(OSError):
            beside.unlink()


def _pack(path: Path, files: Mapping[str, bytes]) -> None:
    """Write the ZIP file uncompressed: compressed bytes depend on the version of the compressor."""
    with zipfile.ZipFile(path, "x", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system, entry.external_attr = 3, _PLAIN_FILE
            archive.writestr(entry, content)


def _error(option: str, path: Path, rule: str, code: str) -> UserError:
    return UserError([Problem(f"{option} {path}", None, rule, _FIX, code=code)])
