"""`trainstack` within this process."""

from typer.testing import CliRunner

from infra.cli.app import app
from infra.errors import UserError


def run(*words: str) -> tuple[int, str]:
    """(exit code, what it said); user errors are raised."""
    done = CliRunner().invoke(app, words)
    if isinstance(done.exception, UserError):
        raise done.exception
    return done.exit_code, done.output
