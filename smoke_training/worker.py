"""Processes of a node: `torchrun ARGUMENTS`, which starts `rank FOLDER` for each of its ranks.

Each ends with the process that started it, so that a launcher that is killed outright leaves none behind.
"""

import sys

from smoke_training.runtime import heartbeat
from smoke_training.runtime.imports import large
from smoke_training.runtime.processes import die_with_parent

MODULES = {"torchrun": "torch.distributed.run", "rank": "smoke_training.rank"}


def main() -> None:
    """Run one of them."""
    die_with_parent()
    name = sys.argv.pop(1)
    heart = heartbeat.own() if name == "rank" else heartbeat.Heartbeat(None)
    heart.phase("start")
    try:
        module = large(MODULES[name])
    except Exception as error:
        heart.broke(f"{type(error).__name__}: {error}")
        raise
    module.main()


if __name__ == "__main__":
    main()
