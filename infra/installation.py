"""The installation of this package: the tool that made it, and commands that repeat or change it.

Standard library only, as set-up imports it before packages are installed.
"""

import json
import re
import shlex
import sys
from collections.abc import Mapping
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Final

from infra import places

DISTRIBUTION: Final = "trainstack"


class Installer(StrEnum):
    """The tool that made the environment of this process."""

    CHECKOUT = "checkout"
    UV = "uv"
    PIPX = "pipx"
    PIP = "pip"


def installer() -> Installer:
    """The tool, by the record that it keeps in the environment; pip keeps none."""
    if places.CHECKOUT:
        return Installer.CHECKOUT
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").is_file():
        return Installer.UV
    return Installer.PIPX if (prefix / "pipx_metadata.json").is_file() else Installer.PIP


def install_command(extra: str = "", version: str = "") -> str:
    """The command that installs this package again, with an extra or in another version."""
    return _command(extra, version, {})


def repeat_command() -> str:
    """The command that completes an installation in which something is missing."""
    return _command("", "", {Installer.UV: "--reinstall ", Installer.PIP: "--force-reinstall "})


def _command(extra: str, version: str, options: Mapping[Installer, str]) -> str:
    made_by = installer()
    if made_by is Installer.CHECKOUT:
        return "make setup"
    start = {
        Installer.UV: f"uv tool install {options.get(made_by, '')}{_python()}",
        Installer.PIPX: f"pipx install --force {_python()}",
        Installer.PIP: f"{shlex.quote(sys.executable)} -m pip install {options.get(made_by, '')}".rstrip(),
    }
    return f"{start[made_by]} {shlex.quote(requirement(extra, version))}"


def once(version: str, arguments: str) -> str:
    """The command that runs another version without installing it; empty where no tool does."""
    wanted = "" if installer() is Installer.CHECKOUT else shlex.quote(requirement("", version))
    match installer():
        case Installer.UV:
            return f"uvx {_python()} --from {wanted} {DISTRIBUTION} {arguments}"
        case Installer.PIPX:
            return f"pipx run {_python()} --spec {wanted} {DISTRIBUTION} {arguments}"
        case _:
            return ""


def requirement(extra: str = "", version: str = "") -> str:
    """The installed version from where it came, as an index may have another package of this name.

    With `version` that one, from the same index, from a wheel of the same address but this version, or from a
    tag of the same repository, whose name is left to the reader: `TAG`.
    """
    found = metadata.distribution(DISTRIBUTION)
    name = f"{DISTRIBUTION}[{extra}]" if extra else DISTRIBUTION
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if not origin.get("url"):
        return f"{name}=={version or found.version}"
    url, versioned = str(origin["url"]), origin.get("vcs_info")  # PEP 610
    if versioned:
        url = f"{versioned['vcs']}+{url}@{'TAG' if version else versioned['commit_id']}"
    elif version:
        url = re.sub(rf"-{re.escape(found.version)}(?=-[^/]*\.whl$)", f"-{version}", url)
    if origin.get("subdirectory"):
        url += f"#subdirectory={origin['subdirectory']}"
    return f"{name} @ {url}"


def _python() -> str:
    """The option for this Python: uv and pipx choose one again, which may be unsupported."""
    return f"--python {sys.version_info[0]}.{sys.version_info[1]}"
