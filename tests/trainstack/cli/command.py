"""`trainstack` within this process."""

from typer.testing import CliRunner

from infra.errors import UserError
from trainstack.cli.app import app


def run(*words: str) -> tuple[int, str]:
    """(exit code, what it said); user errors are raised."""
    done = CliRunner().invoke(app, words)
    if isinstance(done.exception, UserError):
        raise done.exception
    return done.exit_code, done.output
