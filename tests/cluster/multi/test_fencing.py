"""Jobs of a cut-off worker end there before they start elsewhere."""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from components.kubernetes.clusters import fencing
from rehearsal.controlplane.processes import free_ports
from tests.cluster.multi.fleet import Fleet, given, metadata_server
from tests.cluster.programs import started
from tests.cluster.queues.lab import IMAGE
from tests.cluster.waiting import eventually

pytestmark = [pytest.mark.timeout(900), pytest.mark.more]
AFTER_S = 10


@pytest.fixture(autouse=True)
def _empty(clusters: Fleet) -> Iterator[None]:
    yield
    clusters.finish(*list(clusters.jobs))


@contextmanager
def fenced(clusters: Fleet, name: str) -> Iterator[None]:
    """The program on a worker, with the account and the rights of its component."""
    lab = clusters.workers[name]
    args: fencing.FencingArgs = {"namespaces": [*lab.namespaces.values()], "image": IMAGE}
    given(lab.api, lambda: {"p": fencing.Fencing("f", args).program})
    (port,) = free_ports(1)
    folder = clusters.folder / uuid.uuid4().hex[:6]
    folder.mkdir()
    token = lab.api.token(fencing.NAMESPACE, fencing.NAME)
    words = {"port": port, "after-s": AFTER_S}
    program = started(fencing.PROGRAM, words, lab.api.access, token, folder)
    try:
        yield
    finally:
        program.kill()
        program.communicate()


def test_a_cut_off_worker_ends_the_managers_jobs_and_keeps_its_own(clusters: Fleet) -> None:
    clusters.stop()
    west = clusters.workers["west"]
    with metadata_server(west.api.token("default", "default")) as metadata, fenced(clusters, "west"):
        clusters.start([clusters.renewed("west")], metadata)
        eventually(lambda: clusters.open("west"), "west is connected", 60)
        job = clusters.submit("Research")
        clusters.runs_on(job, "west")
        west.submit("Vision", "own", gpus=1)
        west.runs("own")
        # Longer than the limit: the Lease is renewed.
        until = time.monotonic() + 2 * AFTER_S
        eventually(lambda: time.monotonic() > until, "twice the limit is over", 3 * AFTER_S)
        assert clusters.where(job) == {"west": 1}
        clusters.stop()
        eventually(lambda: "west" not in clusters.where(job), lambda: clusters.state(job), 60)
        assert west.admitted("own")
        clusters.start([clusters.renewed("west")], metadata)
        eventually(lambda: len(clusters.where(job)) == 1, lambda: clusters.state(job), 60)
    west.finish("own")
