"""Archives of months: bounded, and never written over by another book."""

import base64

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
