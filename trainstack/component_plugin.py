"""The installed command `pulumi-resource-trainstack`, which Pulumi starts as the plugin of the components."""

import sys
from pathlib import Path

_PACKAGES = Path(__file__).resolve().parents[1]


def main() -> None:
    """Serve until the engine ends this process."""
    # A program's folder, which PYTHONPATH may put first, can have a folder `plugin` or `components`.
    sys.path.insert(0, str(_PACKAGES))
    from plugin.__main__ import main as serve  # noqa: PLC0415

    serve()
