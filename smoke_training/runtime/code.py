"""Where this package was imported from, and the digest of exactly that."""

import functools
import hashlib
from pathlib import Path

import smoke_training


def location() -> Path:
    """The path entry this package was imported from: a zip or a folder."""
    return Path(next(iter(smoke_training.__path__))).parent.resolve()


@functools.cache
def digest() -> str:
    """SHA-256 of the zip, or of all modules with their names when run from a folder."""
    place = location()
    if place.is_file():
        return hashlib.sha256(place.read_bytes()).hexdigest()
    total = hashlib.sha256()
    for path in sorted((place / "smoke_training").rglob("*.py")):
        total.update(f"{path.relative_to(place)}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()
