"""Rounds of the idle GPU watcher: no team's objects stop it, stopped jobs start again, requests are few."""

import argparse
import copy
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from agents.idle_gpus.holders import Holder, holders
from agents.idle_gpus.jobs import RETRY_LABEL, STOPPED_LABEL, Jobs
from agents.idle_gpus.watch import IdleWatch
from agents.shared.api_server import ApiServerError
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
        return (200, found) if found else (404, {})

    def must(self, method: str, path: str, body: Any) -> Mapping[str, Any]:
        self.requests.append((method, path))
        found = self.objects["/".join(path.split("/")[-2:])]
        assert body["metadata"]["uid"] == found["metadata"]["uid"]
        found["spec"] |= body["spec"]
        for part in ("labels", "annotations"):
            for key, value in body["metadata"][part].items():
                found["metadata"][part].pop(key, None)
                if value is not None:
                    found["metadata"][part][key] = value
        return copy.deepcopy(found)

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
def test_a_stopped_job_starts_again_once_for_each_new_value_of_its_label(kind: str, owner: str) -> None:
    server, job, workload = stack(kind, owner)
    job["metadata"]["labels"][RETRY_LABEL] = "of-last-week"
    jobs = Jobs(server)
    assert jobs.stop(Holder(kind, SPACE, "train", ()))
    assert not workload["spec"]["active"] and STOPPED_LABEL in workload["metadata"]["labels"]
    # The label that it has already asks for nothing, beside this process and after it.
    assert jobs.retry(SPACE) == [] and Jobs(server).retry(SPACE) == []
    job["metadata"]["labels"][RETRY_LABEL] = "1"
    again = Jobs(server)
    assert again.retry(SPACE) == ["train"] and workload["spec"]["active"]
    assert workload["metadata"]["labels"].keys() == {"kueue.x-k8s.io/job-uid"}
    assert again.retry(SPACE) == [] and again.stop(Holder(kind, SPACE, "train", ()))
    assert again.retry(SPACE) == [] and not workload["spec"]["active"]


def test_a_job_that_others_deactivated_or_that_is_gone_is_left_alone() -> None:
    server, job, workload = stack("Job")
    workload["spec"]["active"] = False
    jobs = Jobs(server)
    assert not jobs.stop(Holder("Job", SPACE, "train", ())) and not jobs.stop(
        Holder("Job", SPACE, "none", ())
    )
    job["metadata"]["labels"][RETRY_LABEL] = "1"
    assert jobs.retry(SPACE) == [] and workload["spec"]["active"] is False


def test_a_round_without_stopped_jobs_is_one_list_for_each_namespace() -> None:
    server: Any = Server()
    server.pods = {SPACE: [pod()], "team-b": []}
    watch = IdleWatch(server, given([SPACE, "team-b"]))
    watch.round()
    server.requests.clear()
    watch.round()
    assert server.requests == [("LIST", f"/api/v1/namespaces/{name}/pods") for name in (SPACE, "team-b")]


def test_a_namespace_that_cannot_be_read_and_a_strange_amount_stop_nothing() -> None:
    """The API server takes `1k` as a number of devices."""
    server: Any = Server()
    limits = {"resources": {"limits": {"nvidia.com/gpu": "1k"}}}
    server.pods = {SPACE: [pod(), pod("strange", spec={"containers": [limits]})]}
    watch = IdleWatch(server, given(["team-gone", SPACE]))
    watch.round()
    assert "trainstack_idle_blind 1" in watch.text and "trainstack_idle_unknown 2" in watch.text
    assert [holder.pods[0].gpus for holder in holders(server.pods[SPACE], [])] == [2, 1000]


def given(namespaces: list[str]) -> argparse.Namespace:
    return argparse.Namespace(
        namespaces=namespaces, interactive_pools=[], minutes=45, grace_minutes=15, jobs="stop",
        interval_s=1800, startup_s=0, prometheus="http://127.0.0.1:1",
    )  # fmt: skip
