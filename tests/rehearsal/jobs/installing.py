"""A folder of a job whose requirements are wheels of its own, and what they must leave alone."""

import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.agents.managed_job.managed import zipped
from tests.agents.managed_job.wheels import wheel

NEW, OTHER = "demo", "iniconfig"
"""A package that trainstack's environment lacks, and one that it has in another version than the job's."""
ARCHIVE = "smoke_training.zip"
_TRAIN = f"""
import os, {NEW}
from importlib import metadata
print("rank", os.environ.get("RANK"), "has", {NEW}.VALUE, metadata.version("{OTHER}"))
"""


def files(folder: Path) -> dict[str, bytes]:
    """Files of a job, with the program that runs it."""
    folder.mkdir()
    zipped(folder)
    wheels = [wheel(folder, NEW), wheel(folder, OTHER, "0.1")]
    (folder / "requirements.txt").write_text("".join(f"./{one.name}\n" for one in wheels))
    (folder / "train.py").write_text(_TRAIN)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def start(place: str, command: str, **environment: str) -> str:
    """Script that runs a command in `place`; it fails where pip would change trainstack's own packages."""
    words = {"PIP_NO_INDEX": "1", "OMP_NUM_THREADS": "1", "TRAINSTACK_SCRIPT": "train.py", **environment}
    own = f"""[ "$(python3 -c 'import sys; print(sys.prefix)')" != "{sys.prefix}" ] || exit 99"""
    given = " ".join(f"{name}={value}" for name, value in words.items())
    return f"{own}; export {given}; cd {place} && {command}"


def version() -> str:
    """Version of OTHER that trainstack's environment has; that it lacks NEW is asserted."""
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.version(NEW)
    return metadata.version(OTHER)
