"""Times rehearsed deployments of the development stacks of both clouds, per resource, in turns.

    .venv/bin/python benchmarks/clouds.py [runs]

Each run deploys dev-aws and dev-gcp without the validation run, each in a folder of its own and from nothing:
`up`, unchanged `up`, `destroy`. Wall time per resource as medians; the ratio is taken run by run. An
`up` waits for the replicas of a real MLflow server, which is no part of provisioning: "but for MLflow" ends
when everything else exists.
"""

import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.rehearsal import all_but_mlflow, median, rehearse, stack_copy, state_file  # noqa: E402

_STACKS = ("dev-aws", "dev-gcp")


def deployed(stack: str) -> tuple[int, dict[str, float]]:
    """Resources of one stack, and seconds by what was done with it."""
    with tempfile.TemporaryDirectory(prefix="trainstack-benchmark-") as work:
        folder = stack_copy(Path(work, "plain"), smoke=False, stack=stack)
        started = time.time()
        seconds, told = rehearse(folder, "up", "--yes", stack=stack)
        created = re.search(r"(\d+) created", told)
        assert created
        home = folder / ".trainstack/rehearsal"
        found = {"up": seconds, "up but for MLflow": all_but_mlflow(state_file(home), started)}
        found["unchanged up"] = rehearse(folder, "up", "--yes", stack=stack)[0]
        found["destroy"] = rehearse(folder, "destroy", "--yes", stack=stack)[0]
        return int(created.group(1)), found


def main(runs: int) -> None:
    figures: dict[str, dict[str, list[float]]] = {stack: {} for stack in _STACKS}
    for _ in range(runs):
        for stack in _STACKS:
            count, found = deployed(stack)
            for name, seconds in found.items():
                figures[stack].setdefault(name, []).append(seconds / count * 1000)
            print(f"{stack}: {count} resources, " + ", ".join(f"{k} {v:.1f} s" for k, v in found.items()))
    print(f"{runs} runs; ms per resource as median (min .. max)")
    for name in figures[_STACKS[0]]:
        aws, gcp = (figures[stack][name] for stack in _STACKS)
        ratio = statistics.median(ours / theirs for ours, theirs in zip(gcp, aws, strict=True))
        print(f"  {name:18} dev-aws {median(aws)}  dev-gcp {median(gcp)}  ratio {ratio:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
