"""Packages that the light installation leaves out."""

from importlib.util import find_spec

from infra.errors import Problem, UserError
from infra.installation import Installer, install_command, installer

REHEARSE = ("torch", "mlflow")
"""What the extra `rehearse` adds: a validation trains with PyTorch, and an MLflow server records it."""


def require_rehearse(command: str) -> None:
    """Raise UserError where a command cannot run without the extra `rehearse`, or outside of Linux."""
    from rehearsal.projects.homes import require_linux  # noqa: PLC0415 - help needs none of it

    require_linux(command)
    missing = _missing()
    if missing:
        rule = f"needs {' and '.join(missing)}, which this installation leaves out"
        fix = f"Run `{install_command('rehearse')}`."
        raise UserError([Problem(command, None, rule, fix, code="extra-missing")])


def installed() -> str:
    """The extra that this installation has; empty for the light one."""
    return "" if _missing() else "rehearse"


def installation_of(version: str) -> str:
    """Words for the installation of another version, from where this one came."""
    if installer() is Installer.CHECKOUT:
        return f"git checkout of that version, {install_command()}"
    return f"`{install_command(installed(), version)}`"


def _missing() -> list[str]:
    return [name for name in REHEARSE if find_spec(name) is None]
