"""A job whose request for nodes failed: Kueue sets its check to Retry, with the seconds of a pause."""

import datetime
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from components.kubernetes.capacity.args import window_check
from components.kubernetes.queueing.kueue import API_VERSION
from components.kubernetes.queueing.quotas import TeamArgs
from rehearsal.controlplane.api import KubernetesApi, Object
from tests.cluster.queues.lab import flavor, queues
from tests.cluster.waiting import eventually

TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]
POOL, PAUSE_S = "block", 6
QUEUE = {"kueue.x-k8s.io/queue-name": POOL}
ALWAYS: Any = {
    "block": {"starts": "2026-01-01T00:00:00Z", "ends": "2096-01-01T00:00:00Z", "drain_minutes": 40}
}


def now() -> str:
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def respond(api: KubernetesApi, check: str) -> None:
    """Mark a check as active, as its controller does: a queue is inactive until then."""
    eventually(lambda: api.find(API_VERSION, "AdmissionCheck", check))
    row = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": now()}
    patch = {"status": {"conditions": [row]}}
    api.patch(API_VERSION, "AdmissionCheck", check, patch, subresource="status")


def test_a_job_keeps_its_quota_during_the_pause_and_loses_it_after(api: KubernetesApi) -> None:
    flavors = [
        flavor("l4", "g6.2xlarge", 1),
        flavor(POOL, "p4d.24xlarge", 1, own_queue=True, window=ALWAYS),
    ]
    failed = ""

    def fail(status: Object) -> None:
        nonlocal failed
        failed = now()
        status["admissionChecks"][0] |= {
            "state": "Retry", "message": "failed", "lastTransitionTime": failed,
            "requeueAfterSeconds": PAUSE_S, "retryCount": 1,
        }  # fmt: skip

    with ThreadPoolExecutor(1) as controller:
        controller.submit(respond, api, window_check(POOL))
        with queues(api, flavors, TEAM) as lab:
            lab.submit("Research", "first", gpus=8, labels=QUEUE)
            eventually(lambda: (lab.workload("first").get("status") or {}).get("admissionChecks"))
            eventually(lambda: lab.change("first", fail))
            lab.submit("Research", "second", gpus=8, labels=QUEUE)
            eventually(lambda: lab.evictions("first"), lambda: lab.workload("first"))
            evicted = lab.condition("first", "Evicted")["lastTransitionTime"]
            pause = datetime.datetime.fromisoformat(evicted) - datetime.datetime.fromisoformat(failed)
            assert pause.total_seconds() >= PAUSE_S
            # The first is behind the second, though it is older.
            eventually(lambda: lab.condition("second", "QuotaReserved").get("status") == "True")
