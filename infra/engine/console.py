"""Where commands write."""

from rich.console import Console


def new_console(*, stderr: bool = False) -> Console:
    """Names of clouds are shown as they are: of a word between colons rich would make an emoji."""
    return Console(emoji=False, stderr=stderr)
