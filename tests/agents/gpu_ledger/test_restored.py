"""Books that are ahead of the server, and Workloads that this release cannot read."""

import base64
import gzip
import json

from agents.gpu_ledger.book_store import NAME, text_of
from tests.agents.gpu_ledger.cluster import Cluster
from tests.agents.gpu_ledger.test_books import failures, job
from tests.agents.gpu_ledger.workloads import DAY
from tests.agents.gpu_ledger.workloads import MIDNIGHT as T


def test_a_book_of_a_server_that_was_further_is_bound_by_this_server() -> None:
    """As after a restored etcd: versions and the clock of the book are no measure for later changes."""
    cluster = Cluster()
    cluster.put(job("first", admitted=T, finished=T + 60))
    cluster.run()
    body = json.loads(text_of(cluster.config_maps["team-a", NAME]))
    body |= {"version": 10**18, "seen": T + 10**6}
    cluster.config_maps["team-a", NAME]["binaryData"] = packed(json.dumps(body))
    made = cluster.collector()
    cluster.run(made)
    cluster.put(job("second", admitted=T + 120, finished=T + 180))
    cluster.run(made)
    book = cluster.book()
    assert cluster.held() == 120 and book.version <= cluster.version_now and book.seen <= cluster.clock
    assert [note.what for note in book.notes] == ["clock", "clock"]


def test_an_ended_workload_that_could_not_be_read_is_booked_once_it_can_be() -> None:
    cluster = Cluster()
    cluster.put(job("good", admitted=T, finished=T + 60))
    for uid in ("listed", "watched"):
        broken = job(uid, admitted=T, finished=T + 60)
        broken["status"]["admission"] = {"podSetAssignments": "of a newer Kueue"}
        if uid == "listed":
            cluster.put(broken)
            made = cluster.run()
    cluster.put(broken)
    cluster.run(made)
    assert cluster.held() == 60 and failures(made, "team-a").keys() == {"unreadable"}
    # A day later a release that can read them comes; here they become readable, their versions stay.
    cluster.clock += DAY
    for uid in ("listed", "watched"):
        cluster.workloads[uid]["status"]["admission"] = job("any", admitted=T)["status"]["admission"]
    for _ in range(2):
        cluster.run()
        assert cluster.held() == 3 * 60 and not cluster.book().unread


def packed(text: str) -> dict[str, str]:
    return {"book.json.gz": base64.b64encode(gzip.compress(text.encode())).decode()}
