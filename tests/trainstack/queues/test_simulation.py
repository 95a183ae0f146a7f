"""Starts that follow from deadlines: in the order of the queue, within quotas, the same for every listing."""

import random
from dataclasses import replace
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.trainstack.queues.samples import NOW, POOL, hours, job, queue, running, state
from trainstack.queues.estimates import estimates
from trainstack.queues.simulation import starts
from trainstack.queues.state import GPU, Flavor, Job, PodSet, State


def found(made: State) -> dict[str, float | None]:
    """Hours from now to the start of each job, by its name."""
    result = starts(made)
    assert result is not None
    names = {one.key: one.name for one in made.jobs}
    return {names[key]: None if at is None else (at - NOW) / hours(1) for key, at in result.items()}


def test_a_job_starts_when_enough_of_those_that_run_must_have_ended() -> None:
    jobs = [running("a", ends=2), running("b", ends=5), job("c", gpus=8), job("d", gpus=16)]
    assert found(state(jobs)) == {"c": 2, "d": None}  # c names no end
    jobs[2] = replace(jobs[2], longest=hours(1))
    assert found(state(jobs)) == {"c": 2, "d": 5}


def test_a_job_without_a_deadline_is_waited_for_without_end() -> None:
    assert found(state([running("a"), running("b", ends=3), job("c"), job("d")])) == {"c": 3, "d": None}


def test_a_job_that_should_have_ended_ends_now() -> None:
    assert found(state([running("a", ends=-1), running("b"), job("c")])) == {"c": 0}


def test_a_small_job_passes_one_that_does_not_fit_but_in_a_strict_queue() -> None:
    jobs = [running("a", ends=2), job("big", gpus=16), job("small", gpus=8, created=NOW)]
    assert found(state(jobs)) == {"big": None, "small": 0}
    strict = [queue("red", 16, strict=True)]
    assert found(state(jobs, queues=strict)) == {"big": 2, "small": None}


def test_the_team_that_borrows_less_goes_first_then_priority_then_age() -> None:
    jobs = [
        running("a", "red", ends=1),
        running("b", "red", ends=4),
        job("more", "red"),
        job("own", "blue", created=NOW),
    ]
    assert found(state(jobs)) == {"own": 1, "more": 4}
    same = [running("a", ends=1), running("b", ends=4), job("late", priority=5, created=NOW), job("early")]
    assert found(state(same)) == {"late": 1, "early": 4}


def test_a_queue_borrows_no_more_than_its_limit() -> None:
    jobs = [running("a", "red", ends=2), job("c", "red")]
    limited = [queue("red", 8, limit=Decimal(0)), queue("blue", 8)]
    assert found(state(jobs)) == {"c": 0}
    assert found(state(jobs, queues=limited)) == {"c": 2}


def test_a_job_that_tolerates_no_taint_of_a_pool_is_not_given_it() -> None:
    taint = {"key": GPU, "value": "present", "effect": "NoSchedule"}
    flavors = {POOL: Flavor(POOL, {"pool": POOL}, (taint,))}
    assert found(state([job("a")], flavors=flavors)) == {"a": None}
    tolerant = PodSet(1, {GPU: Decimal(8)}, {}, ({"key": GPU, "operator": "Exists"},))
    elsewhere = PodSet(1, {GPU: Decimal(8)}, {"pool": "l4"}, tolerant.tolerations)
    made = [job("a", pod_sets=(tolerant,)), job("b", pod_sets=(elsewhere,))]
    assert found(state(made, flavors=flavors)) == {"a": 0, "b": None}


def test_a_stopped_queue_starts_nothing() -> None:
    assert found(state([job("a")], queues=[queue("red", 8, stopped=True)])) == {"a": None}


def test_without_the_jobs_of_all_teams_nothing_is_simulated() -> None:
    made = replace(state([running("a", ends=1), job("b", gpus=16)]), whole=False)
    assert starts(made) is None
    (result,) = estimates(made).values()
    assert (result.kind, result.start, result.waits) == ("unknown", None, 0)


def test_where_deadlines_are_missing_past_waits_answer() -> None:
    earlier = [
        replace(running(f"old-{index}", created=NOW - hours(30)), assigned={}, evictions=0)
        for index in range(59)
    ]
    ended = [
        replace(one, conditions={**one.conditions, "Finished": one.conditions["Admitted"]}) for one in earlier
    ]
    jobs = [*ended, running("a"), running("b"), job("c")]
    result = estimates(state(jobs))["red", "job-c"]
    assert (result.kind, result.start, result.waits) == ("history", NOW - hours(1) + hours(29.5), 59)
    # Another class of jobs: half of the GPUs.
    other = estimates(state([*jobs, job("d", gpus=4)]))["red", "job-d"]
    assert other.kind == "unknown" and "59" in (other.why or "")


JOBS = st.lists(
    st.tuples(
        st.sampled_from(["red", "blue"]), st.integers(1, 16), st.booleans(), st.integers(1, 5),
        st.integers(-1, 1),
    ),
    max_size=12,
)  # fmt: skip


@given(JOBS, st.randoms())
def test_the_order_of_the_listing_does_not_matter(
    drawn: list[tuple[str, int, bool, int, int]], chance: random.Random
) -> None:
    jobs: list[Job] = []
    left = 16
    for index, (team, gpus, runs, ends, priority) in enumerate(drawn):
        if runs and gpus <= left:
            left -= gpus
            jobs.append(running(f"j{index}", team, gpus, ends=ends))
        else:
            jobs.append(job(f"j{index}", team, gpus, priority=priority, longest=hours(ends)))
    result = found(state(jobs))
    chance.shuffle(jobs)
    assert found(state(jobs)) == result
    # Every job ends, so every job that fits into the pool at all starts, none before now.
    assert all(start is not None and start >= 0 for start in result.values())
