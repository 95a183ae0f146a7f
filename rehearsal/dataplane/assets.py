"""Assets and archives in the inputs of resources, as files with their content.

Source: sdk/go/common/resource/{archive,asset,sig}.go of Pulumi 3.259 (formats and signatures).
"""

import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from rehearsal.core.validate import FOLDER, SIGNATURE

_ASSET = "c44067f5952c0a294b673a41bacd8c17"


class AssetError(Exception):
    """An asset or archive whose content is not on this machine."""


def unpack(archive: Mapping[str, Any], folder: Path) -> None:
    """Extract an archive into a folder. Raises AssetError."""
    if archive.get("assets"):
        for name, inside in archive["assets"].items():
            place = _within(folder, name)
            if inside.get(SIGNATURE) == _ASSET:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(_asset(inside))
            else:
                unpack(inside, place)
        return
    path = _path(archive)
    if not archive.get("path") or not path.exists():
        raise AssetError(f"the archive {archive.get('path') or archive.get('uri')} is not here any more")
    if path.is_dir():
        for file in path.rglob("*"):
            if file.is_file():
                place = folder / file.relative_to(path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(file.read_bytes())
    else:
        unpack_bytes(path.read_bytes(), folder)


def content(asset: Mapping[str, Any]) -> bytes:
    """The content of an asset; of an archive, a zip of its files. Raises AssetError."""
    if asset.get(SIGNATURE) == _ASSET:
        return _asset(asset)
    packed = BytesIO()
    with tempfile.TemporaryDirectory() as made, zipfile.ZipFile(packed, "w") as archive:
        folder = Path(made)
        unpack(asset, folder)
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return packed.getvalue()


def unpack_bytes(content: bytes, folder: Path) -> None:
    """Extract a zip or tar archive into a folder. Raises AssetError."""
    folder.mkdir(parents=True, exist_ok=True)
    if zipfile.is_zipfile(BytesIO(content)):
        with zipfile.ZipFile(BytesIO(content)) as packed:
            packed.extractall(folder)  # noqa: S202 - zipfile itself skips paths outside of the folder
        return
    try:
        with tarfile.open(fileobj=BytesIO(content)) as packed:
            packed.extractall(folder, filter="data")
    except tarfile.TarError as error:
        raise AssetError(f"the archive is neither zip nor tar: {error}") from error


def _asset(asset: Mapping[str, Any]) -> bytes:
    if asset.get("path"):
        path = _path(asset)
        if not path.is_file():
            raise AssetError(f"the file {path} is not here any more")
        return path.read_bytes()
    if asset.get("uri"):
        raise AssetError(f"a rehearsal does not fetch {asset['uri']}")
    return str(asset.get("text") or "").encode()


def _path(asset: Mapping[str, Any]) -> Path:
    return Path(asset.get(FOLDER, ""), str(asset.get("path") or ""))


def _within(folder: Path, name: str) -> Path:
    place = (folder / name).resolve()
    if not place.is_relative_to(folder.resolve()):
        raise AssetError(f"{name} leads out of the archive")
    return place
