"""Times reading property types out of the installed SDKs: cold (an empty cache) and warm (a new process).

    .venv/bin/python benchmarks/schemas.py [runs]

For AWS and Google Cloud all types of the emulation's tables, for Kubernetes those of everyday workloads.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rehearsal.aws.table import TABLE as AWS  # noqa: E402
from rehearsal.core.schema import Schemas  # noqa: E402
from rehearsal.gcp.table import TABLE as GCP  # noqa: E402

_KUBERNETES = (
    "apps/v1:DaemonSet",
    "apps/v1:Deployment",
    "apps/v1:StatefulSet",
    "batch/v1:CronJob",
    "batch/v1:Job",
    "core/v1:ConfigMap",
    "core/v1:Namespace",
    "core/v1:PersistentVolume",
    "core/v1:PersistentVolumeClaim",
    "core/v1:Pod",
    "core/v1:Secret",
    "core/v1:Service",
    "core/v1:ServiceAccount",
    "networking.k8s.io/v1:NetworkPolicy",
    "rbac.authorization.k8s.io/v1:ClusterRole",
    "storage.k8s.io/v1:StorageClass",
)


def seconds(package: str, cache: Path, tokens: Iterable[str]) -> float:
    """Seconds to read the types with a reader of its own."""
    schemas = Schemas(package, cache)
    start = time.perf_counter()
    missing = [token for token in tokens if schemas.resource(token) is None]
    spent = time.perf_counter() - start
    schemas.close()
    if missing:
        sys.exit(f"the SDK has no {', '.join(missing)}")
    return spent


def main(runs: int) -> None:
    packages = {
        "aws": list(AWS.rows),
        "gcp": list(GCP.rows),
        "kubernetes": [f"kubernetes:{kind}" for kind in _KUBERNETES],
    }
    for package, tokens in packages.items():
        cold, warm = [], []
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(seconds(package, Path(cache), tokens))
                warm.append(seconds(package, Path(cache), tokens))
        figures = f"cold {statistics.median(cold):6.2f} s   warm {statistics.median(warm):6.3f} s"
        print(f"{package:11} {len(tokens):4} types   {figures}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
