"""Packages that the light installation leaves out, and the command that installs them."""

import json
import shlex
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from infra.errors import Problem, UserError
from infra.places import CHECKOUT

REHEARSE = ("torch", "mlflow")
"""What the extra `rehearse` adds: a validation trains with PyTorch, and an MLflow server records it."""
_DISTRIBUTION = "trainstack"


def require_rehearse(command: str) -> None:
    """Raise UserError where a command cannot run without the extra `rehearse`, or outside of Linux."""
    from rehearsal.projects.homes import require_linux  # noqa: PLC0415 - help needs none of it

    require_linux(command)
    missing = [name for name in REHEARSE if find_spec(name) is None]
    if missing:
        rule = f"needs {' and '.join(missing)}, which this installation leaves out"
        fix = f"Run `{install_command('rehearse')}`."
        raise UserError([Problem(command, None, rule, fix, code="extra-missing")])


def install_command(extra: str) -> str:
    """The command that adds an extra to this installation, with the tool that made it."""
    if CHECKOUT:
        return "make setup"
    wanted = shlex.quote(_requirement(extra))
    prefix = Path(sys.prefix)
    # Both choose a Python again, which may be one that is not supported.
    python = f"--python {sys.version_info[0]}.{sys.version_info[1]}"
    if (prefix / "uv-receipt.toml").is_file():
        return f"uv tool install {python} {wanted}"
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx install --force {python} {wanted}"
    return f"{shlex.quote(sys.executable)} -m pip install {wanted}"


def _requirement(extra: str) -> str:
    """The installed version from where it came, as an index may have another package of this name."""
    found = metadata.distribution(_DISTRIBUTION)
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if not origin.get("url"):
        return f"{_DISTRIBUTION}[{extra}]=={found.version}"
    url, versioned = origin["url"], origin.get("vcs_info")  # PEP 610
    if versioned:
        url = f"{versioned['vcs']}+{url}@{versioned['commit_id']}"
    if origin.get("subdirectory"):
        url += f"#subdirectory={origin['subdirectory']}"
    return f"{_DISTRIBUTION}[{extra}] @ {url}"
