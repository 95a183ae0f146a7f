"""Rounds of the idle GPU watcher: no team's objects stop it, stopped jobs start again, requests are few."""

import argparse
import copy
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from agents.idle_gpus import watch
from agents.idle_gpus.holders import Holder, holders
from agents.idle_gpus.jobs import Jobs
from agents.idle_gpus.watch import IdleWatch
from agents.shared.api_server import ApiServerError
from agents.shared.kueue import IDLE, RETRIED_NOTE, RETRY_LABEL, STOPPED_LABEL
from agents.shared.times import stamp
from smoke_training.checkpoint_policy import LAST
from tests.agents.idle_gpus.recorded import answer, series
from tests.agents.idle_gpus.test_holders import pod

SPACE = "team-vision"


class Server:
    """Jobs and their Workloads, as far as they are read and changed."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.pods: dict[str, list[dict[str, Any]]] = {}

    def add(self, kind: str, name: str, owner: Mapping[str, str] | None = None) -> dict[str, Any]:
        head: dict[str, Any] = {
            "name": name,
            "namespace": SPACE,
            "uid": f"{kind}-{name}",
            "labels": {},
            "annotations": {},
        }
        if owner:
            head["ownerReferences"] = [dict(owner)]
        body = {"kind": kind, "metadata": head, "spec": {}}
        self.objects[f"{kind.lower()}s/{name}"] = body
        return body

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Mapping[str, Any]]:
        self.requests.append((method, path))
        found = self.objects.get("/".join(path.split("/")[-2:]))
        if found is None or method == "GET":
            return (200, found) if found else (404, {})
        assert body["metadata"]["uid"] == found["metadata"]["uid"]
        found["spec"] |= body.get("spec") or {}
        for part in ("labels", "annotations"):
            for key, value in (body["metadata"].get(part) or {}).items():
                found["metadata"][part].pop(key, None)
                if value is not None:
                    found["metadata"][part][key] = value
        return 200, copy.deepcopy(found)

    def must(self, method: str, path: str, body: Any) -> Mapping[str, Any]:
        status, found = self.ask(method, path, body)
        if status >= 300:
            raise ApiServerError(status, "no such object")
        return found

    def every(self, path: str, **selectors: str) -> Iterator[Mapping[str, Any]]:
        self.requests.append(("LIST", path))
        if path.endswith("/pods"):
            assert "status.phase!=Succeeded" in selectors["fieldSelector"]
            namespace = path.split("/")[-2]
            if namespace not in self.pods:
                raise ApiServerError(403, "pods is forbidden")
            yield from self.pods[namespace]
            return
        key, _, value = selectors["labelSelector"].partition("=")
        for place, body in self.objects.items():
            label = body["metadata"]["labels"].get(key)
            if place.split("/")[0] == path.rpartition("/")[2] and label and label == (value or label):
                yield copy.deepcopy(body)


def stack(kind: str, owner: str = "") -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The server, a job and its Workload; with `owner` the job is that one's."""
    server = Server()
    reference = {"kind": owner, "name": "train"} if owner else None
    job = server.add(kind, "train", reference)
    queued = server.add(owner, "train") if owner else job
    workload = server.add("Workload", "job-train-1", {"kind": queued["kind"], "name": "train"})
    workload["metadata"]["labels"]["kueue.x-k8s.io/job-uid"] = queued["metadata"]["uid"]
    return server, queued, workload


@pytest.mark.parametrize(("kind", "owner"), [("Job", ""), ("JobSet", ""), ("JobSet", "TrainJob")])
def test_the_workload_of_a_stopped_job_has_the_value_of_its_label(kind: str, owner: str) -> None:
    server, job, workload = stack(kind, owner)
    job["metadata"]["labels"][RETRY_LABEL] = "of-last-week"
    jobs = Jobs(server)
    assert jobs.stop(Holder(kind, SPACE, "train", ()))
    assert not workload["spec"]["active"]
    assert workload["metadata"]["labels"][STOPPED_LABEL] == IDLE
    # The label that it has already asks for nothing (`agents.queued_jobs.retries`).
    assert workload["metadata"]["annotations"][RETRIED_NOTE] == "of-last-week"
    assert not jobs.stop(Holder(kind, SPACE, "train", ()))
    assert not jobs.stop(Holder("Job", SPACE, "none", ()))


def test_a_round_without_stopped_jobs_is_one_list_for_each_namespace() -> None:
    server: Any = Server()
    server.pods = {SPACE: [pod()], "team-b": []}
    program = IdleWatch(server, given([SPACE, "team-b"]))
    program.round()
    server.requests.clear()
    program.round()
    assert server.requests == [("LIST", f"/api/v1/namespaces/{name}/pods") for name in (SPACE, "team-b")]


def test_a_namespace_that_cannot_be_read_and_a_strange_amount_stop_nothing() -> None:
    """The API server takes `1k` as a number of devices."""
    server: Any = Server()
    limits = {"resources": {"limits": {"nvidia.com/gpu": "1k"}}}
    server.pods = {SPACE: [pod(), pod("strange", spec={"containers": [limits]})]}
    program = IdleWatch(server, given(["team-gone", SPACE]))
    program.round()
    assert "trainstack_idle_blind 1" in program.text and "trainstack_idle_unknown 2" in program.text
    assert [holder.pods[0].gpus for holder in holders(server.pods[SPACE], [])] == [2, 1000]


def test_a_program_that_announces_checkpoints_without_work_is_found_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hostile member: the annotation is always new, and the last work was two hours ago."""
    now = time.time()
    body = pod()
    body["metadata"]["annotations"] = {LAST: stamp(now)}
    body["status"] |= {"startTime": stamp(now - 86_400)}
    ranges: list[float] = []

    def over(prometheus: str, query: str, begin: float, end: float, step_s: int) -> dict[str, Any]:
        ranges.append(end - begin)
        shares = [0.0] * (int((end - begin) // step_s) + 1)
        rows = (series(body["metadata"]["name"], shares, end=end, namespace=SPACE, gpu=gpu) for gpu in (0, 1))
        return answer(*rows)

    monkeypatch.setattr(watch, "over", over)
    server: Any = Server()
    server.pods = {SPACE: [body]}
    found = IdleWatch(server, given([SPACE]))
    found.round()
    assert f'trainstack_idle_gpus{{namespace="{SPACE}"' in found.text
    assert {*ranges} == {45 * 60.0, 45 * 60.0 + 1800}


def test_a_job_that_replaces_its_pods_is_announced_once_and_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The member deletes its pod every 12 minutes, which is shorter than the grace."""
    server, job, workload = stack("Job")
    clock, names = [time.time()], list[str]()
    began: dict[str, float] = {}

    def over(prometheus: str, query: str, begin: float, end: float, step_s: int) -> dict[str, Any]:
        rows = []
        for name, next_one in zip(names, [*names[1:], ""], strict=True):
            last = min(end, began.get(next_one, end))
            count = int((last - max(begin, began[name])) // step_s)
            rows += [series(name, [0.0] * count, end=last, namespace=SPACE, gpu=gpu) for gpu in (0, 1)]
        return answer(*rows)

    monkeypatch.setattr(watch, "over", over)
    monkeypatch.setattr("agents.idle_gpus.watch.time.time", lambda: clock[0])
    found = IdleWatch(server, argparse.Namespace(**{**vars(given([SPACE])), "startup_s": 3600}))
    start = clock[0]
    owner = {"kind": "Job", "name": "train", "uid": job["metadata"]["uid"], "controller": True}

    def replace_pod() -> None:
        names.append(f"train-{len(names)}")
        began[names[-1]] = clock[0]
        body = pod(names[-1], metadata={"ownerReferences": [owner], "labels": {}, "annotations": {}})
        body["status"] |= {"startTime": stamp(clock[0]), "containerStatuses": [
            {"state": {"running": {"startedAt": stamp(clock[0])}}}]}  # fmt: skip
        server.pods = {SPACE: [body]}
        server.objects = {key: one for key, one in server.objects.items() if "pods/" not in key}
        server.objects[f"pods/{names[-1]}"] = body

    while workload["spec"].get("active", True) and clock[0] < start + 4 * 3600:
        if (clock[0] - start) % 720 == 0:
            replace_pod()
        found.round()
        clock[0] += 60
    assert 105 * 60 < clock[0] - start <= 125 * 60
    # Started again, it has the time of a new job.
    workload["spec"]["active"] = True
    replace_pod()
    for _ in range(30):
        found.round()
        clock[0] += 60
    assert workload["spec"]["active"]


def given(namespaces: list[str]) -> argparse.Namespace:
    return argparse.Namespace(
        namespaces=namespaces, interactive_pools=[], minutes=45, grace_minutes=15, jobs="stop",
        interval_s=1800, startup_s=0, prometheus="http://127.0.0.1:1",
    )  # fmt: skip
