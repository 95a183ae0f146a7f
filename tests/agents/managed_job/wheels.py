"""Wheels that need no index."""

import zipfile
from pathlib import Path


def wheel(folder: Path, name: str = "demo", version: str = "1.0") -> Path:
    """A package of one module, as small as pip takes it."""
    about = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    found = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(found, "w") as archive:
        archive.writestr(f"{name}.py", "VALUE = 42\n")
        for file, text in about.items():
            archive.writestr(f"{name}-{version}.dist-info/{file}", text)
    return found
