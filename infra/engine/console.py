"""Where commands write."""

from rich.console import Console


def new_console() -> Console:
    """Names of clouds are shown as they are: of a word between colons rich would make an emoji."""
    return Console(emoji=False)
