"""Create folders of a mounted file system; runs in a pod, as root.

A folder of a parallel file system can be mounted only when it exists, and a new file system belongs to root.
Standard library only.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def make(root: Path, write: Sequence[str], read: Sequence[str] = ()) -> None:
    """Create folders that all users may write to, and folders that belong to root, with their parents.

    Existing folders stay, with their content.
    """
    for folder in (*write, *read):
        (root / folder).mkdir(parents=True, exist_ok=True)
        sys.stdout.write(f"{folder}\n")
    for folder in write:
        # Containers run as any user; the cluster restricts who may mount the folder.
        (root / folder).chmod(0o1777)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    for kind in ("--write", "--read"):
        parser.add_argument(kind, nargs="*", default=[])
    make(**vars(parser.parse_args()))
