"""Archives of months: bounded, and never written over by another book."""

import base64
import json

from agents.gpu_ledger.archive import MOST_BYTES, Archive, ArchivePart
from agents.gpu_ledger.attempts import OTHER_PROJECT
from agents.gpu_ledger.book_store import NAME, text_of
from agents.gpu_ledger.row import LedgerRow
from tests.agents.gpu_ledger.cluster import Cluster
from tests.agents.gpu_ledger.test_books import failures, job
from tests.agents.gpu_ledger.workloads import DAY
from tests.agents.gpu_ledger.workloads import MIDNIGHT as T


def test_archives_of_a_book_that_was_deleted_are_left_as_they_are() -> None:
    cluster = Cluster()
    cluster.put(job("long", admitted=T))
    made = cluster.run(rounds=60, every_s=3600)
    archive = cluster.config_maps["team-a", f"{NAME}-2026-11"]
    del cluster.config_maps["team-a", NAME]
    cluster.run(made, rounds=60, every_s=3600)
    assert cluster.config_maps["team-a", f"{NAME}-2026-11"] == archive and cluster.held() > 4 * DAY
    assert failures(made, "team-a").keys() == {"conflict", "unreadable"}


def test_an_archive_that_would_be_too_large_loses_detail_and_no_hour() -> None:
    days = [f"2026-11-{day:02d}" for day in range(1, 31)]
    rows = [
        LedgerRow(day, f"{name:04d}-{'y' * 50}", f"pool-{pool}", "nvidia.com/gpu", *figures)
        for day_number, day in enumerate(days)
        for name in range(200)
        for pool in range(12)
        for seed in ((day_number + 1) * (name + 7) * (pool + 3) * 7919 % 86_399,)
        for figures in ((seed * 977, seed * 911, seed * 877, seed * 401),)
    ]
    made = Archive("A", 1, ArchivePart(), ArchivePart(rows), {})
    content = made.content()
    assert len(content) <= MOST_BYTES
    packed = {"binaryData": {"book.json.gz": base64.b64encode(content).decode()}}
    found = Archive.parse(text_of(packed)).at(1).rows
    assert sum(row.held_s for row in found) == sum(row.held_s for row in rows)
    assert {row.day for row in found} == set(days) and OTHER_PROJECT in {row.project for row in found}


def test_a_quota_of_configmaps_that_is_used_up_later_stops_no_archive() -> None:
    cluster = Cluster()
    cluster.put(job("long", admitted=T))
    made = cluster.run(every_s=60)
    cluster.refuses = lambda method, path: 403 if method == "POST" and path.endswith("/configmaps") else 0
    # Over the end of this month.
    cluster.run(made, rounds=10 * 24, every_s=3600)
    assert {month[:7] for month in cluster.book().archived} == {"2026-11", "2026-12"}
    assert cluster.held() > 9 * DAY and cluster.size() < 2_000
    # The archive of January is refused in time to act.
    assert failures(made, "team-a").keys() == {"forbidden"}


def test_empty_archives_of_a_deleted_book_are_used_and_ones_without_its_beginning_read() -> None:
    cluster = Cluster()
    cluster.put(job("long", admitted=T))
    made = cluster.run(every_s=60)
    del cluster.config_maps["team-a", NAME]
    cluster.run(made, rounds=60, every_s=3600)
    assert cluster.held() > DAY and failures(made, "team-a").keys() == {"conflict"}
    body = json.loads(text_of(cluster.config_maps["team-a", f"{NAME}-2026-11"]))
    del body["begun"]
    assert Archive.parse(json.dumps(body)).begun == 0


def test_archives_of_many_teams_are_written_one_after_the_other() -> None:
    teams = [f"team-{number}" for number in range(5)]
    cluster = Cluster(*teams)
    for team in teams:
        cluster.put(job(f"{team}-long", team, admitted=T))
    made = cluster.run(every_s=60)
    cluster.run(made, rounds=47, every_s=3600)
    cluster.run(made, rounds=130, every_s=60)
    archived = [cluster.requests.index(("PUT", path)) for path in map(archive_path, teams)]
    rounds = [index for index, (method, _) in enumerate(cluster.requests) if method == "WATCH"]
    numbers = [sum(index < request for index in rounds) for request in archived]
    assert len({*numbers}) == len(teams) and max(numbers) - min(numbers) <= 2 * len(teams)


def archive_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{NAME}-2026-11"
