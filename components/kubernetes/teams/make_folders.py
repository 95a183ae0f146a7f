"""Makes folders of a mounted file system that everybody may write to; runs in a pod, as root.

A folder of a parallel file system can be mounted only when it exists, and a new file system belongs to root.
Standard library only. Arguments: the folder of the mount, and the paths to make below it.
"""

import sys
from pathlib import Path


def make(root: Path, folders: list[str]) -> None:
    """Make each folder, with its parents; what is there already stays, with its content."""
    for folder in folders:
        path = root / folder
        path.mkdir(parents=True, exist_ok=True)
        # Containers run as any user; who may mount the folder at all, the cluster decides.
        path.chmod(0o1777)
        sys.stdout.write(f"{folder}\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2:])
