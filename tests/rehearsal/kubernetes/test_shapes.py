"""The form in which the API server decodes an object; all else about it is a rule."""

import pytest

from rehearsal.core.schema import Schemas
from rehearsal.kubernetes.api.shapes import misshapen
from rehearsal.kubernetes.rules.book import CONFIG_MAP, CRON_JOB, DEPLOYMENT, POD
from rehearsal.kubernetes.rules.objects.kueue import QUEUE
from tests.rehearsal.kubernetes.rules.building import Changes, but, cron_job, deployment, pod, spaced
from tests.rehearsal.kubernetes.rules.examples.custom import queue

_CPU = "spec.containers.0.resources.requests.cpu"
_BASES = {
    CONFIG_MAP: spaced(data={"a": "1"}), CRON_JOB: cron_job(), DEPLOYMENT: deployment(), POD: pod(),
    QUEUE: queue(),
}  # fmt: skip


@pytest.mark.parametrize(
    ("token", "changes", "path"),
    [
        (DEPLOYMENT, {"spec.replicas": 2**31 - 1}, None),
        (DEPLOYMENT, {"spec.replicas": 2**31}, "spec.replicas"),
        (DEPLOYMENT, {"spec.replicas": "3"}, "spec.replicas"),
        (DEPLOYMENT, {"spec.paused": "true"}, "spec.paused"),
        (CRON_JOB, {"spec.startingDeadlineSeconds": 2**31}, None),
        (CONFIG_MAP, {"data.a": 1}, "data.a"),
        (POD, {_CPU: 1}, None),
        (POD, {_CPU: "500m"}, None),
        (POD, {_CPU: [1]}, "spec.containers[0].resources.requests.cpu"),
        (QUEUE, {"metadata.labels": {"team": "a"}}, None),
        (QUEUE, {"metadata.labels": {"team": 1}}, "metadata.labels.team"),
    ],
)
def test_nothing_is_converted_but_quantities(
    schemas: Schemas, token: str, changes: Changes, path: str | None
) -> None:
    found = misshapen(schemas, token, but(_BASES[token], changes))
    assert [failure.property for failure in found] == ([path] if path else [])
