"""The console of commands."""

from rich.console import Console


def new_console(*, stderr: bool = False) -> Console:
    """A console without emoji: rich would replace words between colons in resource types."""
    return Console(emoji=False, stderr=stderr)
