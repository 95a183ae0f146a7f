"""End a manager's jobs on a worker that the manager has not reached for a while; on the worker, in a pod.

Kueue starts jobs of a lost worker elsewhere after `workerLostTimeout`. On a worker that is only cut off they
would run on beside that, and write the same checkpoints. The manager's program renews a Lease here while
Kueue is connected (`leases`). Without it, this program deletes the jobs of managers, some minutes before that
timeout. A manager that is back earlier finds them gone and starts them again at once, here or elsewhere
(kueue v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go, `reconcileGroup`, 6a). Standard library
only.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from agents.clusters.leases import LEASE, NAMESPACE, renewed
from agents.shared.api_server import ApiServer, ApiServerError, say
from agents.shared.health import Health
from agents.shared.kueue import API

ORIGIN_LABEL = "kueue.x-k8s.io/multikueue-origin"
"""Label of what MultiKueue makes on a worker (kueue v0.19.2 apis/kueue/v1beta2/multikueue_types.go)."""
AFTER_S = 300
"""Seconds without a renewal after which jobs are ended: less than `workerLostTimeout`, by the time that pods
need to end."""
LOOK_S = 5.0
_KINDS = (
    "/apis/batch/v1/{}jobs",
    "/apis/jobset.x-k8s.io/v1alpha2/{}jobsets",
    "/apis/trainer.kubeflow.org/v1alpha1/{}trainjobs",
)
_NOT_FOUND = 404


def fences(age_s: float, steady_s: float, after_s: float) -> bool:
    """Decide whether jobs end: the Lease is `age_s` old, and this API server has responded for `steady_s`.

    An API server that was down, as in an upgrade, gives the manager a fifth of the time to renew, while that
    is still before the timeout of the manager.
    """
    return age_s > after_s and (steady_s >= after_s / 5 or age_s > 1.8 * after_s)


class Fence:
    """Ends jobs of managers. Methods raise ApiServerError and OSError."""

    def __init__(
        self, server: ApiServer, after_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._server, self._after_s, self._clock = server, after_s, clock
        self._steady: float | None = None
        """Since when the API server responds."""
        self._first: int | None = None
        """First time of the API server, which counts where there is no Lease."""
        self.closed = False
        """Whether jobs of managers are ended."""

    def look(self) -> None:
        """Read the Lease, and end the jobs where it is too old."""
        place = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{LEASE}"
        status, lease = self._server.ask("GET", place)
        if status >= 300 and status != _NOT_FOUND:
            self._steady = None
            raise ApiServerError(status, str(lease.get("message")))
        now = self._server.now()
        self._steady = self._clock() if self._steady is None else self._steady
        self._first = now if self._first is None else self._first
        last = renewed(lease) if status < 300 else None
        age_s = now - (self._first if last is None else last)
        closed = fences(age_s, self._clock() - self._steady, self._after_s)
        if closed != self.closed:
            say(f"the manager has been away for {age_s} s: its jobs end" if closed else "the manager is back")
        self.closed = closed
        if closed:
            self.end()

    def interrupted(self) -> None:
        """The API server did not respond."""
        self._steady = None

    def end(self) -> None:
        """Delete the jobs of managers, and their Workloads."""
        for kind in (*_KINDS, f"{API}/{{}}workloads"):
            for found in self._server.every(kind.format(""), labelSelector=ORIGIN_LABEL):
                metadata = found["metadata"]
                if metadata.get("deletionTimestamp"):
                    continue
                place = kind.format(f"namespaces/{metadata['namespace']}/") + f"/{metadata['name']}"
                options = {
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "propagationPolicy": "Background",
                    "preconditions": {"uid": metadata["uid"]},
                }
                status, answer = self._server.ask("DELETE", place, options)
                if status >= 300 and status not in (_NOT_FOUND, 409):
                    raise ApiServerError(status, str(answer.get("message")))
                say(f"{metadata['namespace']}/{metadata['name']} is ended: {kind.rpartition('}')[2]}")


def main() -> int:
    """Watch the Lease of the pod's cluster until the process ends; an error is logged and retried."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--after-s", type=float, default=AFTER_S)
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    asked = parser.parse_args()
    fence = Fence(ApiServer(asked.account), asked.after_s)
    health = Health(asked.port, lambda: "\n", patience_s=90)
    while True:
        try:
            fence.look()
        except (ApiServerError, OSError) as error:
            say(str(error))
            fence.interrupted()
        health.beat()
        time.sleep(min(LOOK_S, asked.after_s / 5))


if __name__ == "__main__":
    sys.exit(main())
