"""The credentials of a worker end while jobs run and wait on the manager: no job runs twice."""

from collections.abc import Iterator

import pytest

from components.kubernetes.clusters import worker
from tests.cluster.multi.fleet import Fleet
from tests.cluster.multi.lifetimes import watched
from tests.cluster.waiting import eventually

pytestmark = [pytest.mark.timeout(900), pytest.mark.more]
WEST = {"nodeSelector": {"trainstack.dev/cluster": "west"}}


@pytest.fixture(autouse=True)
def _empty(clusters: Fleet) -> Iterator[None]:
    yield
    clusters.finish(*list(clusters.jobs))


def test_jobs_of_a_worker_whose_token_expired_run_on_and_new_ones_wait_for_its_renewal(
    clusters: Fleet,
) -> None:
    west = clusters.workers["west"].api
    # A token ends with the object that it is bound to: Kueue's Secret stays as it is.
    bound = west.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bound", "namespace": worker.NAMESPACE}}
    )["metadata"]
    of = {"apiVersion": "v1", "kind": "Secret", "name": bound["name"], "uid": bound["uid"]}
    path = west.resource("v1", "ServiceAccount").url(worker.NAMESPACE, worker.ACCOUNT, "token")
    order = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600, "boundObjectRef": of},
    }
    token = west.request("POST", path, order)["status"]["token"]
    clusters.write("west", clusters.config("west", token))
    eventually(lambda: clusters.active("west"), "west is connected", 60)
    job = clusters.submit("Research", pod=WEST)
    clusters.runs_on(job, "west")
    with watched({name: clusters.planes[name] for name in clusters.workers}) as lifetimes:
        west.delete("v1", "Secret", bound["name"], worker.NAMESPACE)
        eventually(lambda: not _accepted(clusters, token), "the token is refused", 60)
        more = clusters.submit("Research", pod=WEST)
        eventually(
            lambda: clusters.manager.condition(more, "QuotaReserved").get("status") == "True", "quota", 60
        )
        assert clusters.where(job) == {"west": 1}
        clusters.connect("west")
        clusters.runs_on(more, "west")
        assert clusters.where(job) == {"west": 1}
        assert not clusters.manager.evictions(job) and not lifetimes.twice()


def _accepted(clusters: Fleet, token: str) -> bool:
    """Whether the API server of west accepts a token."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    found = clusters.workers["west"].api.create(review)
    return bool((found.get("status") or {}).get("authenticated"))
