"""Books of several teams: bounded, apart from each other, exact over crashes, upgrades and clock steps."""

import json
from typing import Any

import pytest

from agents.gpu_ledger import book_text
from agents.gpu_ledger.archive import Archive
from agents.gpu_ledger.attempts import OTHER_PROJECT, PROJECT_LABEL, month_end
from agents.gpu_ledger.book_store import NAME, text_of
from agents.gpu_ledger.ledger import MOST_PROJECTS
from agents.shared.times import stamp
from tests.agents.gpu_ledger.cluster import Cluster, KilledError, metric
from tests.agents.gpu_ledger.workloads import DAY, MIDNIGHT, workload

T = MIDNIGHT


def job(uid: str, namespace: str = "team-a", **given: Any) -> dict[str, Any]:
    made = workload(uid, gpus=1, **given)
    made["metadata"]["namespace"] = namespace
    return made


def finished(cluster: Cluster, count: int, *, labels: bool = False, namespace: str = "team-a") -> None:
    """Jobs of a minute each, which still exist."""
    for index in range(count):
        project = {PROJECT_LABEL: f"{index:05d}-{'x' * 50}"} if labels else {}
        cluster.put(job(f"{namespace}-{index}", namespace, admitted=T, finished=T + 60, labels=project))


def failures(made: Any, namespace: str) -> dict[str, float]:
    """Counts by reason."""
    name = "trainstack_ledger_write_failures_total"
    reasons = ("too_large", "forbidden", "conflict", "server", "unreadable", "unreachable")
    found = {reason: metric(made, name, namespace=namespace, reason=reason) for reason in reasons}
    return {reason: count for reason, count in found.items() if count}


def test_distinct_project_labels_do_not_fill_a_book_and_every_hour_is_counted() -> None:
    cluster = Cluster()
    finished(cluster, 11_000, labels=True)
    made = cluster.run()
    assert cluster.held() == 11_000 * 60
    assert cluster.size() < 100_000 and failures(made, "team-a") == {}
    by_project = {row.project: row.held_s for row in cluster.rows()}
    assert len(by_project) == MOST_PROJECTS + 1
    assert by_project[OTHER_PROJECT] == (11_000 - MOST_PROJECTS) * 60
    # Figures of a job count for the project that its hours are booked for.
    assert metric(made, "trainstack_gpu_hours_total", project=OTHER_PROJECT) is not None


def test_finished_jobs_do_not_fill_a_book_and_are_not_counted_again() -> None:
    cluster = Cluster()
    finished(cluster, 20_000)
    cluster.run()
    assert cluster.held() == 20_000 * 60 and cluster.size() < 100_000
    before = len(cluster.requests)
    cluster.run()
    pages = [path for method, path in cluster.requests[before:] if method == "LIST"]
    assert cluster.held() == 20_000 * 60 and len(pages) == 40
    # An upgrade of Kueue writes all of them anew, beside a collector and while it is down.
    made = cluster.collector()
    cluster.clock += 2 * 3600
    cluster.run(made)
    for body in [*cluster.workloads.values()]:
        cluster.put(body)
    cluster.run(made)
    for body in [*cluster.workloads.values()]:
        cluster.put(body)
    cluster.run()
    assert cluster.held() == 20_000 * 60
    for body in [*cluster.workloads.values()]:
        cluster.put(body, "DELETED")
    cluster.run()
    assert cluster.held() == 20_000 * 60


@pytest.mark.parametrize(("status", "reason"), [(422, "too_large"), (403, "forbidden"), (500, "server")])
def test_a_book_that_cannot_be_written_stops_no_other_and_causes_no_lists(status: int, reason: str) -> None:
    cluster = Cluster("team-a", "team-b", "team-c")
    for namespace in cluster.namespaces:
        cluster.put(job(namespace, namespace, admitted=T))
    bad = "/api/v1/namespaces/team-a/configmaps"
    cluster.refuses = lambda method, path: status if method in ("PUT", "POST") and path.startswith(bad) else 0
    made = cluster.run(rounds=60)
    for namespace in ("team-b", "team-c"):
        assert cluster.book(namespace).seen >= cluster.clock - 120 and failures(made, namespace) == {}
        written = metric(made, "trainstack_ledger_written_timestamp_seconds", namespace=namespace)
        assert written is not None and written >= T + cluster.steady - 120
        assert metric(made, "trainstack_gpu_hours_total", team=namespace, state="held") == pytest.approx(
            1.0, abs=0.1
        )
    assert metric(made, "trainstack_ledger_written_timestamp_seconds", namespace="team-a") is None
    # An hour with ever rarer attempts; Workloads were listed once.
    assert set(failures(made, "team-a")) == {reason} and 3 <= failures(made, "team-a")[reason] <= 13
    assert sum(method == "LIST" for method, _ in cluster.requests) == 3
    cluster.refuses = lambda method, path: 0
    cluster.run(made, rounds=12)
    assert cluster.held("team-a") == cluster.held("team-b") > 3600


def test_a_book_that_cannot_be_read_is_left_as_it_is() -> None:
    cluster = Cluster("team-a", "team-b")
    bad = {"metadata": {"resourceVersion": "1", "name": NAME}, "data": {"book.json": "{"}}
    cluster.config_maps["team-a", NAME] = bad
    cluster.put(job("b", "team-b", admitted=T))
    made = cluster.run(rounds=10)
    assert cluster.config_maps["team-a", NAME] == bad and failures(made, "team-a").keys() == {"unreadable"}
    assert cluster.held("team-b") > 300


def test_a_workload_that_cannot_be_read_stops_no_other() -> None:
    cluster = Cluster("team-a", "team-b")
    made = cluster.run()
    broken = job("broken", admitted=T)
    broken["status"]["conditions"][0]["lastTransitionTime"] = "yesterday"
    cluster.put(broken)
    for namespace in cluster.namespaces:
        cluster.put(job(f"good-{namespace}", namespace, admitted=cluster.clock))
    cluster.run(made, rounds=10)
    assert cluster.held("team-a") == cluster.held("team-b") > 300
    assert failures(made, "team-a").keys() == {"unreadable"}


def test_past_days_are_in_the_archive_of_their_month_and_budgets_know_them() -> None:
    cluster = Cluster()
    cluster.clock = T - DAY
    made = cluster.run()
    cluster.put(job("long", admitted=cluster.clock))
    began = cluster.clock
    cluster.run(made, rounds=10 * 24, every_s=3600)
    book = cluster.book()
    assert {row.day for row in book.totals()} == {stamp(cluster.clock - back * DAY)[:10] for back in (0, 1)}
    assert book.archived.keys() == {"2026-11", "2026-12"} and book.archived["2026-11"] >= 2
    assert cluster.held() == book.seen - began
    days = sorted({row.day for row in cluster.rows()})
    assert len(days) == 11 and cluster.size() < 2000
    month = sum(row.held_s for row in book.of_month("2026-12"))
    assert month == book.seen - month_end(T)
    # A counter grows with the hours, also where rows move.
    assert metric(made, "trainstack_gpu_hours_total", state="held") == pytest.approx(
        (book.seen - began) / 3600, abs=0.1
    )


@pytest.mark.parametrize("killed_at", range(1, 9))
def test_a_crash_at_any_write_loses_and_repeats_nothing(killed_at: int) -> None:
    """Two shards are written, and the book that lists them: it dies before or after one of them."""
    cluster = Cluster()
    cluster.clock = month_end(T) - DAY // 2
    made = cluster.run()
    began = cluster.clock
    cluster.put(job("long", admitted=began))
    cluster.run(made, rounds=2)
    cluster.put(job("short", admitted=began, finished=began + 500))
    cluster.run(made, rounds=2)
    # Two months have rows of past days once it is back.
    cluster.clock += 4 * DAY
    writes, after = [0], killed_at % 2 == 0

    def dies(method: str, path: str) -> int:
        writes[0] += method in ("PUT", "POST") and "configmaps" in path
        return -1 if writes[0] == (killed_at + 1) // 2 + after and (after or method != "GET") else 0

    cluster.refuses = dies
    with cluster.clocked(), pytest.raises(KilledError):
        other = cluster.collector()
        for _ in range(10):
            cluster.clock += 60
            cluster.steady += 60
            other.load()
            other.settle(cluster.version_now)
        raise KilledError
    cluster.refuses = lambda method, path: 0
    cluster.run(rounds=5)
    assert cluster.held() == cluster.book().seen - began + 500
    assert cluster.book().archived.keys() == {"2026-11", "2026-12"}


def old_text(archived: list[str]) -> str:
    """A book as a collector of the schema before wrote it."""
    days = [f"2026-{month}-{day:02d}" for month in ("11",) for day in range(1, 25)]
    rows = [[day, "llama", "a100", "nvidia.com/gpu", 86_400, 80_000] for day in days]
    attempt = {
        "name": "job-open", "project": "llama", "admitted": T - 3600, "since": T - 3600, "ready": T - 3500,
        "shares": [["a100", "nvidia.com/gpu", 1]], "done": 0, "past_s": 0, "left_s": None,
    }  # fmt: skip
    body = {
        "schema": "trainstack.ledger/1", "team": "A", "begun": T - 40 * DAY, "seen": T - 60, "rows": rows,
        "uncertain": [["2026-11-02", "a100", "nvidia.com/gpu", 5]], "uses": [], "measured": T - 60,
        "notes": [[T - 5000, "held", "job-x", "over budget"]], "figured": 0, "open": {"open": attempt},
        "booked": {}, "archived": archived, "warned": {"2026-11 usd": 50}, "terms": {"prices": {}},
    }  # fmt: skip
    return json.dumps(body)


def test_a_book_of_the_schema_before_is_continued_and_its_archive_read() -> None:
    cluster = Cluster()
    october = [["2026-10-31", "llama", "a100", "nvidia.com/gpu", 7200, 7000, 0, 0]]
    archive = {"schema": "trainstack.ledger/1", "team": "A", "rows": october, "terms": {}}
    cluster.config_maps["team-a", f"{NAME}-2026-10"] = {"data": {"book.json": json.dumps(archive)}}
    cluster.config_maps["team-a", NAME] = {
        "metadata": {"resourceVersion": "1"}, "data": {"book.json": old_text(["2026-10"])},
    }  # fmt: skip
    cluster.put(job("open", admitted=T - 3600))
    cluster.run(rounds=10)
    book = cluster.book()
    assert cluster.held() == 24 * 86_400 + 7200 + book.seen - (T - 3600)
    assert {note.what for note in book.notes} == {"held"} and book.warned == {"2026-11 usd": 50}
    assert book.archived == {"2026-10": 1, "2026-11": 1}
    november = Archive.parse(text_of(cluster.config_maps["team-a", f"{NAME}-2026-11"]))
    assert november.at(1).uncertain == [("2026-11-02", "a100", "nvidia.com/gpu", 5)]
    # A collector of the schema before refuses the new one, and so leaves it as it is.
    assert json.loads(book_text.text(book))["schema"] != "trainstack.ledger/1"


@pytest.mark.parametrize("step_s", [3600, -3600, DAY, -DAY, 40 * DAY])
def test_a_step_of_the_api_servers_clock_books_nothing_twice(step_s: int) -> None:
    """A job that was running before and one that begins after; the clock is right again an hour later."""
    cluster = Cluster()
    cluster.clock = T + 5 * DAY
    made = cluster.run()
    # The times that Kueue writes are of another clock, which is right.
    began = cluster.clock
    cluster.put(job("early", admitted=began))
    cluster.run(made, rounds=10)
    cluster.clock += step_s
    cluster.run(made, rounds=30)
    cluster.clock -= step_s
    cluster.run(made, rounds=30)
    ended = cluster.clock
    cluster.put(job("early", admitted=began, finished=ended))
    cluster.put(job("late", admitted=ended - 100, finished=ended))
    cluster.run(made, rounds=3)
    cluster.run(rounds=3)
    uncertain = sum(cluster.book().uncertain.values())
    held = cluster.held()
    assert held <= ended - began + 100 + max(0, step_s) and held + uncertain >= ended - began + 100
    assert "clock" in {note.what for note in cluster.book().notes}


def test_a_gap_of_the_watch_is_closed_by_one_list_and_books_what_ended_in_it() -> None:
    cluster = Cluster("team-a", "team-b")
    made = cluster.run()
    began = cluster.clock
    cluster.put(job("before", admitted=began))
    cluster.run(made)
    cluster.put(job("before", admitted=began, finished=cluster.clock))
    ended = cluster.clock
    cluster.put(job("within", admitted=ended - 50, finished=ended))
    cluster.changes.clear()
    cluster.gone = True
    lists = sum(method == "LIST" for method, _ in cluster.requests)
    cluster.run(made, rounds=5)
    assert cluster.held() == ended - began + 50
    assert sum(method == "LIST" for method, _ in cluster.requests) == lists + len(cluster.namespaces)


def test_workloads_that_were_deleted_while_the_collector_was_down_are_certain_until_it_saw_them() -> None:
    cluster = Cluster()
    made = cluster.run()
    began = cluster.clock
    cluster.put(job("gone", admitted=began))
    cluster.run(made, rounds=10)
    seen = cluster.book().seen
    cluster.clock += 7200
    cluster.put(job("gone", admitted=began), "DELETED")
    cluster.run()
    book = cluster.book()
    assert cluster.held() == seen - began and book.open == {}
    assert 7200 <= sum(book.uncertain.values()) <= 7200 + 240


def test_an_elastic_job_counts_what_kueue_counts() -> None:
    """Scaled down in place, beside the collector and while it is down; then replaced by a larger one."""
    cluster = Cluster()
    made = cluster.run()
    began = cluster.clock
    small = workload("one", admitted=began, gpus=8, pods=8)
    cluster.put(small)
    cluster.run(made, rounds=10)
    small["spec"]["podSets"][0]["count"] = 6
    cluster.put(small)
    first = cluster.clock + 60
    cluster.run(made, rounds=10)
    seen = cluster.book().seen
    # It becomes four unobserved.
    cluster.clock += 3600
    small["spec"]["podSets"][0]["count"] = 4
    cluster.put(small)
    made = cluster.run(rounds=5)
    held = 8 * (first - began) + 6 * (seen - first) + 4 * (cluster.book().seen - seen)
    assert abs(cluster.held() - held) <= 8 * 60
    assert 2 * 3600 <= sum(cluster.book().uncertain.values()) <= 2 * 3600 + 2 * 300
    # The larger one has its quota at once, and is admitted when a check lets it.
    before, at = cluster.held(), cluster.clock
    base = cluster.book().seen
    larger = workload("two", gpus=8, pods=8)
    larger["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": "team-a/job-one"}
    larger["status"] = workload("two", admitted=at, gpus=8, pods=8)["status"]
    larger["status"]["conditions"][0]["type"] = "QuotaReserved"
    cluster.put(larger)
    done = json.loads(json.dumps(small))
    ended = {"type": "Finished", "status": "True", "reason": "WorkloadSliceReplaced"}
    done["status"]["conditions"].append({**ended, "lastTransitionTime": stamp(at)})
    cluster.put(done)
    cluster.run(made, rounds=10)
    assert cluster.held() - before == 4 * (at - base) + 8 * (cluster.book().seen - at)


def test_pods_that_are_done_free_nothing_of_a_partial_admission_that_kueue_keeps() -> None:
    """Kueue: of 10 pods 6 are admitted; it counts 6 until fewer than 6 of the 10 are not done."""
    cluster = Cluster()
    made = cluster.run()
    partial = workload("partial", admitted=cluster.clock, gpus=6, pods=6)
    partial["spec"]["podSets"][0]["count"] = 10
    began = cluster.clock
    cluster.put(partial)
    cluster.run(made)
    partial["status"]["reclaimablePods"] = [{"name": "main", "count": 3}]
    cluster.put(partial)
    cluster.run(made)
    assert cluster.held() == 6 * (cluster.book().seen - began)
