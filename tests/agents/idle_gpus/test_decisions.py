"""Announcements and stops, for any history; nothing is stopped without proof."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.idle_gpus.decisions import (
    ANNOUNCE,
    BUSY,
    CHECKPOINTED,
    IDLE,
    NOTHING,
    STARTING,
    STOP,
    TAKE_BACK,
    UNKNOWN,
    IdlePolicy,
    judge,
    last_checkpoint,
)
from agents.idle_gpus.holders import GpuPod, Holder
from agents.idle_gpus.measures import Activity
from agents.shared.dcgm import PodKey

NOW = 1_800_000_000.0
FOREVER = float("inf")
POLICY = IdlePolicy(window_s=2700, grace_s=900, stop_jobs=False, interval_s=1800, startup_s=3600)
STOPPING = dataclasses.replace(POLICY, stop_jobs=True)
SILENT = Activity(gpus=2, coverage=1.0, busiest=0.0)
POD = GpuPod(
    namespace="team-vision",
    name="notebook",
    uid="u",
    owner="ada",
    gpus=2,
    interactive=True,
    began=NOW - 7200,
    started=NOW - 7200,
    last_checkpoint=None,
    stop_at=None,
)


def holder(*pods: GpuPod, kind: str = "Pod") -> Holder:
    return Holder(kind, "team-vision", "notebook", pods or (POD,))


def changed(**more: object) -> GpuPod:
    return dataclasses.replace(POD, **more)  # type: ignore[arg-type]


def of(*pods: GpuPod, activity: Activity | None = SILENT) -> dict[PodKey, Activity]:
    return {(pod.namespace, pod.name): activity for pod in (pods or (POD,)) if activity is not None}


def test_an_idle_session_is_announced_first_and_stopped_after_the_grace() -> None:
    first = judge(holder(), of(), POLICY, NOW)
    assert (first.state, first.action, first.stop_at) == (IDLE, ANNOUNCE, NOW + 900)
    announced = changed(stop_at=first.stop_at)
    assert judge(holder(announced), of(), POLICY, NOW + 899).action == NOTHING
    assert judge(holder(announced), of(), POLICY, NOW + 900).action == STOP


@pytest.mark.parametrize(
    ("pod", "activity", "state"),
    [
        (POD, dataclasses.replace(SILENT, busiest=0.02), BUSY),
        (changed(started=None), SILENT, STARTING),
        (changed(started=NOW - 3599), SILENT, STARTING),
        (changed(last_checkpoint=NOW - 1799), SILENT, CHECKPOINTED),
        (POD, None, UNKNOWN),
        (POD, dataclasses.replace(SILENT, coverage=0.8), UNKNOWN),
        (POD, dataclasses.replace(SILENT, gpus=1), UNKNOWN),
        # A clock a day ahead protects no holder.
        (changed(last_checkpoint=NOW + 86_400), SILENT, IDLE),
        (changed(last_checkpoint=NOW - 1801), SILENT, IDLE),
        # The first activity ends the start.
        (changed(started=NOW - 60), dataclasses.replace(SILENT, busiest=0.5), BUSY),
    ],
)
def test_what_protects_a_holder(pod: GpuPod, activity: Activity | None, state: str) -> None:
    due = dataclasses.replace(pod, stop_at=NOW - 1)
    # It worked an hour ago.
    worked = of(due, activity=dataclasses.replace(SILENT, busiest=0.5))
    found = judge(holder(due), of(due, activity=activity), STOPPING, NOW, worked)
    assert found.state == state
    expected = {BUSY: TAKE_BACK, CHECKPOINTED: TAKE_BACK, IDLE: STOP}
    assert found.action == expected.get(state, NOTHING)


@pytest.mark.parametrize("forged", [{"last_checkpoint": NOW - 1}, {"started": NOW - 60}])
def test_a_member_who_forges_checkpoints_or_restarts_holds_gpus_up_to_a_bound(
    forged: dict[str, float],
) -> None:
    """A program that announces checkpoints it does not write, or ends and restarts within the hour."""
    assert POLICY.bound_s == 2700 + 3600
    pod = changed(**forged)
    for long_activity, state in (
        (None, "protected"),
        (of(pod), IDLE),
        # It worked in the meantime, or there is no proof that it did not.
        (of(pod, activity=dataclasses.replace(SILENT, busiest=0.5)), "protected"),
        (of(pod, activity=dataclasses.replace(SILENT, coverage=0.5)), "protected"),
        ({}, "protected"),
    ):
        found = judge(holder(pod), of(pod), POLICY, NOW, long_activity).state
        assert (found if found == IDLE else "protected") == state
    # A pod that is too young for a proof is not asked about.
    young = dataclasses.replace(pod, began=NOW - 3600)
    assert judge(holder(young), of(young), POLICY, NOW, of(young)).state != IDLE


def test_a_protected_holder_of_unknown_activity_keeps_its_announcement() -> None:
    """Prometheus failed, or lost what was before its restart."""
    due = changed(stop_at=NOW - 1, last_checkpoint=NOW - 1)
    for long_activity in (None, {}, of(due, activity=dataclasses.replace(SILENT, coverage=0.5))):
        found = judge(holder(due), of(due), STOPPING, NOW, long_activity)
        assert (found.state, found.action) == (CHECKPOINTED, NOTHING)
    assert judge(holder(due), of(due), STOPPING, NOW, of(due)).action == STOP
    # A young one is no forger: it is withdrawn.
    young = dataclasses.replace(due, began=NOW - 3600)
    assert judge(holder(young), of(young), STOPPING, NOW).action == TAKE_BACK


def replaced(*began: float, gpus: int = 2, most: int = 2) -> tuple[Holder, dict[PodKey, Activity]]:
    """A job of one pod that is replaced at these times, seconds ago, with the figures of each since then."""
    ends = [*began[1:], 0.0]
    pods = [
        changed(name=f"run-{number}", uid=str(number), gpus=gpus, began=NOW - at, started=NOW - at)
        for number, at in enumerate(began)
    ]
    activity = {
        (pod.namespace, pod.name): Activity(gpus, (at - end) / POLICY.bound_s, 0.0)
        for pod, at, end in zip(pods, began, ends, strict=True)
    }
    found = Holder("Job", "team-vision", "run", (pods[-1],), "u", tuple(pods[:-1]), most)
    return found, activity


def test_a_job_whose_pods_are_replaced_is_as_old_as_its_first_pod() -> None:
    """A member deletes the pod every 25 minutes: each new one looks as if it were starting."""
    job, activity = replaced(6300, 4800, 3300, 1800, 300)
    assert judge(job, {}, STOPPING, NOW, activity).action == ANNOUNCE
    assert judge(job, {}, STOPPING, NOW).action == NOTHING
    # One of them worked: a node was lost, and the job starts again.
    first = ("team-vision", "run-0")
    worked = {**activity, first: dataclasses.replace(activity[first], busiest=0.5)}
    assert judge(job, {}, STOPPING, NOW, worked).state == STARTING
    # It held no GPUs meanwhile: its queue preempted it; or it held more of them.
    paused = {key: each for key, each in activity.items() if key != ("team-vision", "run-1")}
    assert judge(job, {}, STOPPING, NOW, paused).state == STARTING
    more, few = replaced(6300, 4800, 3300, 1800, 300, most=16)
    assert judge(more, {}, STOPPING, NOW, few).state == STARTING
    # Without figures of the pod that it has now, nothing is proven.
    unseen = {key: each for key, each in activity.items() if key != ("team-vision", "run-4")}
    assert judge(job, {}, STOPPING, NOW, unseen).state == STARTING
    young, known = replaced(3600, 1800, 300)
    assert judge(young, {}, STOPPING, NOW, known).state == STARTING


def test_a_pod_that_came_later_puts_off_nothing() -> None:
    job, activity = replaced(6300, 4800, 3300, 1800, 300)
    before = dataclasses.replace(job.gone[-1], stop_at=NOW + 60)
    announced = dataclasses.replace(job, gone=(*job.gone[:-1], before))
    found = judge(announced, {}, STOPPING, NOW, activity)
    assert (found.action, found.stop_at) == (ANNOUNCE, NOW + 60)
    notified = dataclasses.replace(announced, pods=(dataclasses.replace(job.pods[0], stop_at=NOW + 60),))
    assert judge(notified, {}, STOPPING, NOW, activity).action == NOTHING
    later = judge(notified, {}, STOPPING, NOW + 60, activity)
    assert later.action == STOP


def test_a_job_is_announced_and_not_stopped_unless_the_spec_says_otherwise() -> None:
    pod = changed(interactive=False)
    verdict = judge(holder(pod, kind="Job"), of(pod), POLICY, NOW)
    assert (verdict.action, verdict.stop_at) == (ANNOUNCE, FOREVER)
    never = dataclasses.replace(pod, stop_at=FOREVER)
    assert judge(holder(never, kind="Job"), of(never), POLICY, NOW + 1e6).action == NOTHING
    # The spec changed: the stop is announced again, with a time.
    again = judge(holder(never, kind="Job"), of(never), STOPPING, NOW)
    assert (again.action, again.stop_at) == (ANNOUNCE, NOW + 900)


def test_one_pod_that_works_protects_its_whole_job() -> None:
    pods = [changed(name=f"run-{index}", interactive=False) for index in range(4)]
    activity = of(*pods) | of(pods[3], activity=dataclasses.replace(SILENT, busiest=1.0))
    assert judge(holder(*pods, kind="Job"), activity, STOPPING, NOW).state == BUSY
    fresh = [*pods[:3], dataclasses.replace(pods[3], last_checkpoint=NOW - 10)]
    assert judge(holder(*fresh, kind="Job"), of(*pods), STOPPING, NOW).state == CHECKPOINTED
    assert last_checkpoint(holder(*fresh), NOW) == NOW - 10


def test_a_later_time_in_the_annotation_postpones_the_stop() -> None:
    later = changed(stop_at=NOW + 86_400)
    assert judge(holder(later), of(), POLICY, NOW + 80_000).action == NOTHING
    assert judge(holder(later), of(), POLICY, NOW + 86_400).action == STOP


def test_a_pod_that_came_later_is_announced_too() -> None:
    announced, new = changed(name="a", stop_at=NOW - 1), changed(name="b")
    found = judge(holder(announced, new), of(announced, new), POLICY, NOW)
    assert (found.action, found.stop_at) == (ANNOUNCE, NOW)


TIMES = st.none() | st.floats(NOW - 1e5, NOW + 1e5)
PODS = st.builds(
    GpuPod,
    namespace=st.just("team-vision"),
    name=st.sampled_from(["a", "b", "c"]),
    uid=st.just("u"),
    owner=st.just("ada"),
    gpus=st.integers(1, 3),
    interactive=st.booleans(),
    started=TIMES,
    last_checkpoint=TIMES,
    stop_at=TIMES | st.just(FOREVER),
)
ACTIVITY = st.builds(
    Activity, gpus=st.integers(0, 3), coverage=st.floats(0, 1), busiest=st.floats(0, 1) | st.just(0.0)
)


@given(
    st.lists(PODS, min_size=1, max_size=3, unique_by=lambda pod: pod.name),
    st.dictionaries(st.sampled_from(["a", "b", "c"]), ACTIVITY),
    st.booleans(),
)
def test_nothing_is_stopped_without_an_announcement_a_proof_and_an_old_checkpoint(
    pods: list[GpuPod], measured: dict[str, Activity], stop_jobs: bool
) -> None:
    policy = dataclasses.replace(POLICY, stop_jobs=stop_jobs)
    whole = Holder("Job", "team-vision", "run", tuple(pods))
    activity = {("team-vision", name): each for name, each in measured.items()}
    if judge(whole, activity, policy, NOW).action != STOP:
        return
    assert stop_jobs or whole.interactive
    for pod in pods:
        assert pod.stop_at is not None and pod.stop_at <= NOW
        assert pod.started is not None and NOW - pod.started >= policy.startup_s
        proof = measured[pod.name]
        assert proof.gpus >= pod.gpus and proof.coverage >= 0.9 and proof.busiest <= 0.01
    latest = last_checkpoint(whole, NOW)
    assert latest is None or NOW - latest >= policy.interval_s
