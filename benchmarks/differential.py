"""Agreement of the emulated Kubernetes with a real API server, and duration of the corpus.

    .venv/bin/python benchmarks/differential.py

The corpus is that of `tests/cluster/differential`; what counts as agreement is said in its
`comparison.py`. Prints the rows of the section in RESULTS.md.
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from components.kubernetes.queueing import kueue_values
from components.kubernetes.training.trainer import CHART, VALUES
from rehearsal.controlplane.control_plane import ControlPlaneOptions, running
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.kubernetes.cloud import KubernetesCloud
from tests.cluster.differential.comparison import compare
from tests.cluster.differential.corpus import corpus
from tests.rehearsal.kubernetes.harness import Rehearsed


def main() -> None:
    began = time.monotonic()
    sequences = corpus()
    composed = time.monotonic()
    values = kueue_values.values(claimed={})
    with tempfile.TemporaryDirectory() as folder, running(
        ControlPlaneOptions(Path(folder) / "plane", addons={"jobset": {}, CHART: VALUES, "kueue": values})
    ) as plane, plane.api() as api:  # fmt: skip
        home = Path(folder) / "home"
        state = State(home / "state.sqlite")
        schemas = Schemas("kubernetes", Path(".trainstack/cache/schemas"))
        rehearsed = Rehearsed(state, home, KubernetesCloud(state, schemas, home))
        ready = time.monotonic()
        found = compare(sequences, rehearsed, api)
        asked = time.monotonic()
        rehearsed.cloud.stop()
        schemas.close()
        state.close()
    steps = sum(len(one.steps) for one in sequences)
    rows = (
        ("sequences, requests compared", f"{len(sequences)}, {steps}"),
        ("agree on accepted or refused, and on the field", str(len(found.agree))),
        ("agree that no pod is let in, which the emulation says of its owner", str(len(found.foreseen))),
        ("listed exceptions", f"{len(found.excepted)} ({len(found.excepted) / len(sequences):.1%})"),
        ("disagree", str(len(found.disagree))),
        (
            "seconds to ask both; to compose the stacks and mutate",
            f"{asked - ready:.0f}; {composed - began:.0f}",
        ),
    )
    print("| what | figure |\n|---|---|")
    for what, figure in rows:
        print(f"| {what} | {figure} |")
    for name, said in found.disagree.items():
        print(f"\n{name}\n{said}")


if __name__ == "__main__":
    main()
