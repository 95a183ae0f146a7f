"""Names of files: text that is the same under every locale (pure)."""

import os
import re
from pathlib import Path

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def text_of(name: str | bytes) -> str:
    """The name of a file as text: UTF-8, other bytes as surrogates (PEP 383), whatever the locale is."""
    return os.fsencode(name).decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """The bytes of a name as the file system has them."""
    return text.encode("utf-8", "surrogateescape")


def local(folder: Path, text: str) -> Path:
    """The path of a file below `folder`, as the file system has it."""
    return folder / os.fsdecode(bytes_of(text))


def name_of(path: Path) -> str:
    """A path of this machine for an error."""
    return shown(text_of(os.fspath(path)))


def shown(text: str) -> str:
    r"""The name for an error: other bytes and control characters as `\x..`."""
    printable = bytes_of(text).decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", printable)


def has_control_characters(text: str) -> bool:
    """Return whether a name has line breaks or other control characters."""
    return _CONTROL.search(text) is not None
