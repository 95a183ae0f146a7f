"""Held hours in which GPUs worked, from responses of a real Prometheus."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.gpu_ledger.attempts import seen
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.usage import BEHIND_S, GpuUsage
from tests.agents.gpu_ledger.metering import PROFILED, total
from tests.agents.gpu_ledger.workloads import workload
from tests.components.kubernetes.monitoring.prometheus import running

LASTED_S = 1800


class Pods:
    """The API server, as far as it is asked."""

    def every(self, path: str, **selectors: str) -> Iterator[dict[str, Any]]:
        assert path == "/api/v1/namespaces/team-vision/pods"
        label = "jobset.sigs.k8s.io/jobset-name"
        for job in ("train", "moved"):
            yield {"metadata": {"name": f"{job}-0", "labels": {label: job}}}


def booked(prometheus: str, job: str, now: int) -> tuple[int, int]:
    """Measured and used GPU-seconds of the last half an hour of a job that holds one GPU."""
    body = workload(admitted=now - 86_400, gpus=1)
    body["metadata"] |= {"namespace": "team-vision", "ownerReferences": [{"name": job}]}
    server: Any = Pods()
    asks, said, book = GpuUsage(server, prometheus), seen(body), TeamBook("Vision", now - LASTED_S)
    assert said
    asks.observe(body, said)
    asks.book({"team-vision": book}, now + BEHIND_S)
    assert book.measured == now
    return total(book)


def moved(now: int) -> Iterator[str]:
    """A sample each half a minute of a pod with one GPU: busy by half, unseen, and on another node."""
    for node, share, begin, end in (
        ("n1", 0.5, now - LASTED_S, now - 1200),
        ("n1", 0.5, now - 900, now - 870),
        ("n2", 1.0, now - 870, now),
    ):
        labels = f'namespace="team-vision",pod="moved-0",job="dcgm-exporter",node="{node}",UUID="GPU-{node}"'
        for at in range(begin + 30, end + 1, 30):
            yield f"{PROFILED}{{{labels}}} {share} {at}\n"


def test_prometheus_itself_answers_what_is_asked(tmp_path: Path) -> None:
    now = int(time.time()) // 60 * 60
    with running(tmp_path, "".join(moved(now))) as real:
        train, other = (booked(real.address, job, now) for job in ("train", "moved"))
    assert list(train) == pytest.approx([LASTED_S, LASTED_S * 0.87], abs=1)
    # 10 minutes by half, 5 unseen, one in which both nodes had a figure of the one GPU that it held, 14 busy.
    assert list(other) == pytest.approx([LASTED_S - 300, 300 + 45 + 840], abs=1)
