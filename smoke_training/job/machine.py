"""What a job runs on, as far as a run's record needs it to be repeated: versions and devices."""

import platform
from importlib import metadata
from pathlib import Path

from smoke_training.runtime import files, host

GPUS = Path("/proc/driver/nvidia/gpus")


def facts(image: str) -> dict[str, str]:
    """Image ("unknown" where nobody told it), Python, torch, GPUs and driver ("none" where there is none)."""
    return {
        "image": image or "unknown",
        "python": platform.python_version(),
        "torch": version("torch"),
        "gpu": ", ".join(gpus()) or "none",
        "driver": host.nvidia_driver() or "none",
    }


def version(package: str) -> str:
    """The version of an installed package without importing it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def gpus(folder: Path = GPUS) -> list[str]:
    """Models of this machine's GPUs, from the driver's lines such as `Model: NVIDIA L4`."""
    found = []
    for path in sorted(folder.glob("*/information")):
        for line in files.lines(path):
            name, _, value = line.partition(":")
            if name == "Model":
                found.append(value.strip())
    return found
