"""One command of a small stack on Google Cloud, in a process that a killed engine may end.

`python -m tests.rehearsal.runs.small_google up HOME` prints how many resources it created, updated and so on.
"""

import atexit
import gc
import json
import sys
from pathlib import Path
from typing import Any

from rehearsal.client import Rehearsal
from tests.rehearsal.day2.changes import pool
from tests.rehearsal.day2.stack import GCP, selected
from tests.rehearsal.runs.updates import changes


def small(spec: Any) -> None:
    """One team, and one pool of GPUs with an initial node."""
    spec["layout"]["pools"] = [one for one in spec["layout"]["pools"] if one["name"] == "a100"]
    pool("a100", min_nodes=1, own_queue=False)(spec)
    spec["teams"] = [{"name": "Research", "gpus": {"a100": 8}}]


def main() -> None:
    gc.disable()  # and not at the end either: as in `stacks.__main__`
    atexit.register(gc.freeze)
    operation, home = sys.argv[1:]
    stack = selected(Rehearsal(Path(home)), GCP.program(small))
    done = stack.destroy() if operation == "destroy" else stack.up()
    sys.stdout.write(json.dumps(changes(done)))


if __name__ == "__main__":
    main()
