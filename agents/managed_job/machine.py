"""Versions and devices of the machine, recorded so that a run can be repeated."""

import platform
from importlib import metadata
from pathlib import Path

from smoke_training import files
from smoke_training.runtime import host

GPUS = Path("/proc/driver/nvidia/gpus")


def facts(image: str) -> dict[str, str]:
    """Image ("unknown" without one), Python, torch, GPUs and driver ("none" without one)."""
    return {
        "image": image or "unknown",
        "python": platform.python_version(),
        "torch": version("torch"),
        "gpu": ", ".join(gpus()) or "none",
        "driver": host.nvidia_driver() or "none",
    }


def version(package: str) -> str:
    """Return the version of an installed package without importing it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def gpus(folder: Path = GPUS) -> list[str]:
    """Return the models of this machine's GPUs, from the driver's lines such as `Model: NVIDIA L4`."""
    found = []
    for path in sorted(folder.glob("*/information")):
        for line in files.lines(path):
            name, _, value = line.partition(":")
            if name == "Model":
                found.append(value.strip())
    return found
