"""Entry point of the plugin: the engine starts this folder, or the installed command."""

import sys
from pathlib import Path

# Started as a folder, Python imports modules from here first, and would find them without their package.
if sys.path and sys.path[0] == str(Path(__file__).resolve().parent):
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from pulumi.provider.server import main as serve

from plugin.provider import ComponentPlugin


def main() -> None:
    """Serve until the engine ends this process."""
    serve(ComponentPlugin(), sys.argv[1:])


if __name__ == "__main__":
    main()
