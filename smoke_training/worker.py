"""The process torchrun starts for each rank: prepares itself, then imports torch and runs `rank`."""

import gc

from smoke_training.runtime.processes import die_with_parent


def main() -> None:
    """Run one rank; garbage collection is off while torch is imported (10 % faster)."""
    die_with_parent()
    gc.disable()
    from smoke_training.rank import main as run  # noqa: PLC0415 - the import is what takes the time

    gc.enable()
    run()


if __name__ == "__main__":
    main()
