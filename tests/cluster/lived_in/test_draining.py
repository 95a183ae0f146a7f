"""`trainstack up` on a stack in use: what it announces, stops before the engine starts, and leaves."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from pulumi import automation

from components.kubernetes.queueing.kueue import API_VERSION
from infra.engine import recovery
from infra.engine.stack import EngineStack
from infra.errors import UserError
from infra.stackspec.document import node
from infra.stackspec.load import LoadedSpec
from tests.cluster.lived_in.stack import STACK, LivedIn
from tests.cluster.lived_in.users import APPLIED, IGNORES_SIGTERM, RESEARCH, VISION, Users
from tests.cluster.waiting import eventually
from tests.rehearsal.day2.changes import pool
from tests.rehearsal.day2.stack import AWS
from trainstack.cli.operations.deployment import DeploySession
from trainstack.cli.operations.jobs_in_use import jobs_in_use, resume_queues
from trainstack.plans.jobs import ENDS, STAYS, STOPS

pytestmark = [pytest.mark.timeout(300), pytest.mark.more]
GPU = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
EIGHT = {**GPU, "nvidia.com/gpu": "8"}


def _vision_leaves(spec: Any) -> None:
    spec["teams"] = [team for team in spec["teams"] if team["name"] != "Vision"]


def _l4_removed(spec: Any) -> None:
    spec["layout"]["pools"] = [one for one in spec["layout"]["pools"] if one["name"] != "l4"]
    for team in spec["teams"]:
        team["gpus"].pop("l4", None)


def _stopped(lived: LivedIn) -> list[str]:
    queues = lived.api.list(API_VERSION, "ClusterQueue")
    return [one["metadata"]["name"] for one in queues if one["spec"].get("stopPolicy", "None") != "None"]


def test_a_team_leaves_with_a_pod_that_ignores_sigterm_and_an_unknown_finalizer(
    lived: LivedIn, users: Users, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainstack.plans.leftovers._CONTROLLER_S", 10.0)
    users.job(VISION, "stubborn", grace_s=3, notes={IGNORES_SIGTERM: "3s"})
    users.checkpointing(VISION, "saves", str(tmp_path / "saved"))
    users.job(VISION, "waits", requests=GPU, pods=12)
    users.job(RESEARCH, "train", pods=2, claim="checkpoints")
    users.forgotten(VISION)
    running = [(VISION, "stubborn"), (VISION, "saves"), (RESEARCH, "train")]
    users.reach({**dict.fromkeys(running, "running"), (VISION, "waits"): "waiting"})
    others = users.pods([RESEARCH])
    ends = {(ENDS, f"{VISION}/{name}") for name in ("stubborn", "saves", "waits")}
    assert {*lived.announced(_vision_leaves)} == ends
    lived.change(_vision_leaves)
    assert lived.api.find("v1", "Namespace", VISION) is None
    assert (tmp_path / "saved").read_text() == "saved"
    assert users.pods([RESEARCH]) == others
    assert _stopped(lived) == []


def test_now_waits_for_no_grace_period(lived: LivedIn, users: Users) -> None:
    users.job(VISION, "stubborn", grace_s=3600, notes={IGNORES_SIGTERM: "3600s"})
    users.reach({(VISION, "stubborn"): "running"})
    lived.change(_vision_leaves, now=True)
    assert lived.api.find("v1", "Namespace", VISION) is None


def test_jobs_of_a_removed_pool_wait_and_others_go_on(lived: LivedIn, users: Users) -> None:
    users.job(VISION, "on-l4", requests=GPU)
    users.job(APPLIED, "on-cpu")
    users.job(RESEARCH, "on-a100", requests=EIGHT, queue="a100")
    names = [(VISION, "on-l4"), (APPLIED, "on-cpu"), (RESEARCH, "on-a100")]
    users.reach(dict.fromkeys(names, "running"))
    others = users.pods([APPLIED, RESEARCH])
    assert lived.announced(_l4_removed) == [(STOPS, f"{VISION}/on-l4")]
    lived.change(_l4_removed)
    users.reach(
        {(VISION, "on-l4"): "waiting", (APPLIED, "on-cpu"): "running", (RESEARCH, "on-a100"): "running"}
    )
    assert users.pods([APPLIED, RESEARCH]) == others
    assert not lived.api.get("batch/v1", "Job", "on-l4", VISION)["status"].get("failed")
    assert _stopped(lived) == []


def test_a_removed_queue_of_a_pool_stops_its_jobs_and_does_not_wait_for_their_end(
    lived: LivedIn, users: Users
) -> None:
    users.job(RESEARCH, "train", requests=EIGHT, queue="a100")
    users.job(VISION, "other")
    users.reach({(RESEARCH, "train"): "running", (VISION, "other"): "running"})
    others = users.pods([VISION])
    assert lived.announced(pool("a100", own_queue=False)) == [(STOPS, f"{RESEARCH}/train")]
    lived.change(pool("a100", own_queue=False))
    users.reach({(RESEARCH, "train"): "waiting", (VISION, "other"): "running"})
    assert users.pods([VISION]) == others
    # More CPU than all nodes of the queue's first pool: by GPUs alone, Kueue finds room in that.
    users.job(RESEARCH, "again", requests={**EIGHT, "cpu": "64"})
    users.reach({(RESEARCH, "again"): "running"})


def test_a_smaller_pool_and_a_pool_behind_its_own_queue_stop_no_job(lived: LivedIn, users: Users) -> None:
    users.job(RESEARCH, "train", pods=2, requests=EIGHT, queue="a100")
    users.job(VISION, "train", requests=GPU)
    users.reach({(RESEARCH, "train"): "running", (VISION, "train"): "running"})
    before = users.pods()
    changes = pool("a100", max_nodes=3), pool("l4", own_queue=True)
    assert lived.announced(*changes) == [(STAYS, f"{VISION}/train")]
    lived.change(*changes)
    assert users.pods() == before


def test_a_change_that_was_interrupted_leaves_no_queue_stopped(lived: LivedIn, users: Users) -> None:
    """The first command ends after the drain; the second, without the change, lets the jobs go on."""
    users.job(VISION, "on-l4", requests=GPU)
    users.reach({(VISION, "on-l4"): "running"})
    with jobs_in_use(cast(Any, lived.stack), lived.rehearsal, None) as jobs:
        jobs.drain(now=False)
    assert _stopped(lived)
    users.reach({(VISION, "on-l4"): "waiting"})
    assert lived.announced() == []
    lived.change()
    assert _stopped(lived) == []
    users.reach({(VISION, "on-l4"): "running"})


def test_an_up_that_is_locked_out_stops_no_job(lived: LivedIn, users: Users) -> None:
    users.job(VISION, "train")
    users.reach({(VISION, "train"): "running"})
    before = users.pods()
    loaded = LoadedSpec(AWS.spec(_vision_leaves), node({}, "test"))
    engine = EngineStack(STACK, lived.rehearsal.environment())
    session = DeploySession(name=STACK, engine=engine, rehearsal=lived.rehearsal, loaded=loaded)
    with (
        recovery.locked(lived.rehearsal.home / "state", "trainstack", loaded.spec.name),
        pytest.raises(UserError) as caught,
    ):
        session.up(confirmed=True)
    assert caught.value.codes == (("stack-is-busy", "--stack"),)
    assert users.pods() == before and _stopped(lived) == []


def test_only_what_a_command_has_stopped_goes_on_when_another_is_ahead(lived: LivedIn, users: Users) -> None:
    ahead = AWS.spec(*lived.edits, _vision_leaves)
    stack = cast(Any, lived.stack)
    with jobs_in_use(stack, lived.rehearsal, ahead) as first:
        first.drain(now=False)
        stopped = _stopped(lived)
        with jobs_in_use(stack, lived.rehearsal, None) as second:
            second.drain(now=False)
            assert {*_stopped(lived)} > {*stopped}
            second.release()
        assert stopped and _stopped(lived) == stopped
        first.release()
    assert _stopped(lived) == []


def test_a_control_plane_that_goes_away_is_reported_and_the_next_up_continues(
    lived: LivedIn, users: Users
) -> None:
    users.job(RESEARCH, "train", pods=2, claim="checkpoints")
    users.reach({(RESEARCH, "train"): "running"})
    before = users.pods([RESEARCH])
    (pid,) = next(one for one in lived.rehearsal.status()["workloads"] if one["kind"] == "ControlPlane")[
        "pids"
    ]
    with ThreadPoolExecutor(1) as threads:
        going = threads.submit(lived.up, _vision_leaves)
        eventually(lambda: lived.api.get("v1", "Namespace", VISION)["status"]["phase"] == "Terminating")
        psutil.Process(pid).kill()
        failed = going.exception()
    assert failed is None or isinstance(failed, automation.CommandError)
    eventually(lambda: lived.rehearsal.status() and lived.up().keys() <= {"same", "delete"})
    assert lived.api.find("v1", "Namespace", VISION) is None
    assert users.pods([RESEARCH]) == before


def test_a_second_up_is_refused_while_the_first_runs(lived: LivedIn, users: Users) -> None:
    users.job(RESEARCH, "train")
    users.reach({(RESEARCH, "train"): "running"})
    before = users.pods([RESEARCH])
    with ThreadPoolExecutor(1) as threads:
        going = threads.submit(lived.up, _vision_leaves)
        eventually(lambda: lived.api.get("v1", "Namespace", VISION)["status"]["phase"] == "Terminating")
        with pytest.raises(automation.ConcurrentUpdateError, match="locked"):
            lived.stack.up()
        going.result()
    assert users.pods([RESEARCH]) == before


def test_jobs_of_a_cluster_that_does_not_respond_are_unknown(
    lived: LivedIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    began = time.monotonic()
    config = tmp_path / "kubeconfig"
    config.write_text(lived.kubeconfig.read_text().replace(lived.api.access.server, "https://127.0.0.1:1"))
    monkeypatch.setattr("trainstack.cli.operations.jobs_in_use.admin_kubeconfig", lambda *_: config)
    with jobs_in_use(cast(Any, lived.stack), lived.rehearsal, None) as jobs:
        assert [effect for effect, _ in jobs.lines()] == ["jobs unknown"]
        jobs.drain(now=False)
    resume_queues(cast(Any, lived.stack), lived.rehearsal)
    assert time.monotonic() - began < 60
