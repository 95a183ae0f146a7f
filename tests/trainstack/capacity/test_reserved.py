"""Reservations, blocks and training plans: as the cloud describes them, over their term, and at their end."""

import datetime
from dataclasses import replace
from typing import Any

import pytest

from infra.errors import Problem
from infra.stackspec import load_file
from infra.stackspec.aws.purchases import TrainingPlan
from infra.stackspec.layouts import LargeLayout, SmallLayout
from infra.stackspec.stack import StackSpec
from tests.trainstack.capacity.test_capacity import START, past, pool
from tests.trainstack.preflight.aws.asking import Cloud
from tests.trainstack.preflight.gcp.asking import DENIED, ID, Google
from trainstack.capacity.aws.reading import described
from trainstack.capacity.classes import PoolCapacity
from trainstack.capacity.endings import RunningJob, endings
from trainstack.capacity.gcp.reading import described as google_described
from trainstack.capacity.notes import notes, reservation_notes
from trainstack.capacity.pools import pools
from trainstack.capacity.reserved import CapacitySegment, ReservedCapacity
from trainstack.capacity.terms import commitment_uses
from trainstack.ledger.periods import TimeSpan

DAY = datetime.timedelta(days=1)
RESERVATIONS = "compute.reservations.aggregatedList"
PLAN_PATH = "layout.machines[0]"
ARN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/december"
PLAN: dict[str, Any] = {
    "TrainingPlanArn": ARN,
    "TrainingPlanName": "december",
    "Status": "Active",
    "StartTime": START,
    "EndTime": START + 9 * DAY,
    "UpfrontFee": "16800.00",
    "CurrencyCode": "USD",
    "TotalInstanceCount": 2,
    "AvailableInstanceCount": 1,
    "UnhealthyInstanceCount": 1,
    # Two parts with two days between them.
    "ReservedCapacitySummaries": [
        {
            "ReservedCapacityArn": f"arn:aws:sagemaker:us-west-2:123456789012:reserved-capacity/{name}",
            "InstanceType": "ml.p5.48xlarge",
            "TotalInstanceCount": 2,
            "Status": "Active",
            "StartTime": START + first * DAY,
            "EndTime": START + last * DAY,
        }
        for name, first, last in (("abcdefghijklmn", 0, 3), ("opqrstuvwxyzab", 5, 9))
    ],
}


def planned() -> StackSpec:
    """small-aws with a machine of a training plan."""
    spec = load_file("small-aws").spec
    assert isinstance(spec.layout, SmallLayout)
    first, *others = spec.layout.machines
    bought = TrainingPlan(kind="training_plan", arn=ARN)
    h100 = first.model_copy(
        update={"name": "h100", "machine": "ml.p5.48xlarge", "purchase": bought, "max_nodes": 2}
    )
    return spec.model_copy(
        update={"layout": spec.layout.model_copy(update={"machines": (h100, first, *others)})}
    )


def plan_pool(answer: dict[str, Any]) -> tuple[PoolCapacity, ReservedCapacity]:
    """The machine of the plan as SageMaker describes it in the answer."""
    spec = planned()
    cloud = Cloud().answers("sagemaker", "describe_training_plan", answer, TrainingPlanName="december")
    (found,) = described(pools(spec, START.date()), cloud)
    assert isinstance(found, ReservedCapacity) and cloud.is_exhausted()
    assert cloud.regions == [("sagemaker", spec.region)]
    return pools(spec, START.date(), {PLAN_PATH: found})[0], found


def test_a_plan_commits_its_parts_and_its_fee_is_the_price_of_all_their_hours() -> None:
    one, found = plan_pool(PLAN)
    assert one.commitment == "training_plan" and (one.nodes, one.node_gpus) == (2, 8)
    assert one.period == TimeSpan(START, START + 9 * DAY)
    assert one.committed(START, START + 9 * DAY) == 2 * 8 * 24 * 7
    assert one.committed(START + 3 * DAY, START + 5 * DAY) == 0
    own = one.rates["own"]
    assert own is not None and own.usd == pytest.approx(16800 / (2 * 8 * 24 * 7))
    assert [note.split(": ")[1] for note in reservation_notes([one], {one.path: found})] == [
        "1 of 2 machines are unhealthy"
    ]


@pytest.mark.parametrize(
    "changes", [{"CurrencyCode": "CNY"}, {"UpfrontFee": "on request"}, {"UpfrontFee": None}]
)
def test_a_fee_that_is_no_number_of_dollars_is_unknown(changes: dict[str, Any]) -> None:
    answer = {key: value for key, value in {**PLAN, **changes}.items() if value is not None}
    one, _ = plan_pool(answer)
    assert one.rates["own"] is None and one.committed(START, START + DAY) == 2 * 8 * 24


def test_a_plan_that_failed_commits_nothing() -> None:
    parts = [{**row, "Status": "Failed"} for row in PLAN["ReservedCapacitySummaries"]]
    one, found = plan_pool({**PLAN, "Status": "Failed", "ReservedCapacitySummaries": parts})
    assert one.nodes == 0 and not [*commitment_uses([one], past(lambda _: 1.0, 30))]
    assert any("no capacity, and no bill" in note for note in reservation_notes([one], {one.path: found}))


@pytest.mark.parametrize(
    ("code", "expected", "words"),
    [
        ("AccessDeniedException", "reservation-not-readable", "sagemaker:DescribeTrainingPlan"),
        ("ResourceNotFound", "reservation-not-found", "preflight"),
    ],
)
def test_a_plan_that_cannot_be_read_is_a_problem(code: str, expected: str, words: str) -> None:
    cloud = Cloud().refuses("sagemaker", "describe_training_plan", code, "no")
    (problem,) = described(pools(planned(), START.date()), cloud)
    assert isinstance(problem, Problem) and problem.code == expected
    assert problem.path == "layout.machines[0].purchase" and words in problem.fix


def test_a_reservation_has_the_times_and_nodes_of_ec2() -> None:
    """A future-dated one cannot be given back before the end of its commitment."""
    answer = {
        "CapacityReservations": [
            {
                "CapacityReservationId": "cr-1",
                "State": "active",
                "InstanceType": "p4d.24xlarge",
                "TotalInstanceCount": 3,
                "AvailableInstanceCount": 2,
                "StartDate": START + 10 * DAY,
                "CommitmentInfo": {
                    "CommittedInstanceCount": 2,
                    "CommitmentEndDate": START + 40 * DAY,
                },
            }
        ]
    }
    cloud = Cloud().answers("ec2", "describe_capacity_reservations", answer, CapacityReservationIds=["cr-1"])
    (found,) = described([pool("reserved", 4)], cloud)
    assert isinstance(found, ReservedCapacity)
    assert (found.nodes, found.free, found.span) == (3, 2, TimeSpan(START + 10 * DAY, None))
    one = pool("reserved", 4)
    (size, locked) = reservation_notes([one], {one.path: found})
    assert "has 3 nodes" in size and "2026-09-10" in locked


def test_a_cancelled_reservation_without_an_end_is_not_paid_for_ever() -> None:
    row = {
        "CapacityReservationId": "cr-1",
        "State": "cancelled",
        "InstanceType": "p4d.24xlarge",
        "TotalInstanceCount": 4,
        "StartDate": START,
    }
    answer = {"CapacityReservations": [row]}
    cloud = Cloud().answers("ec2", "describe_capacity_reservations", answer, CapacityReservationIds=["cr-1"])
    (found,) = described([pool("reserved", 4)], cloud)
    assert isinstance(found, ReservedCapacity) and found.nodes == 0


def test_pools_of_one_reservation_share_its_nodes_and_one_of_another_region_has_its_own() -> None:
    large = load_file("large-gcp").spec
    assert isinstance(large.layout, LargeLayout)
    first, second = large.layout.clusters
    (h100,) = (one for one in first.pools if one.name == "h100")
    a, b, c = (
        h100.model_copy(update={"name": f"h100-{index}", "max_nodes": most})
        for index, most in enumerate((3, 2, 4))
    )
    clusters = (first.model_copy(update={"pools": (a, b)}), second.model_copy(update={"pools": (c,)}))
    layout = large.layout.model_copy(update={"clusters": clusters})
    teams = tuple(one.model_copy(update={"gpus": {}}) for one in large.teams)
    spec = large.model_copy(update={"layout": layout, "teams": teams})
    named = [one for one in pools(spec, START.date()) if one.prepaid]
    here, there = (
        ReservedCapacity("h100", "READY", one.machine, [CapacitySegment(TimeSpan(START, None), nodes)])
        for one, nodes in ((named[0], 5), (named[-1], 4))
    )
    read = {one.path: here if one.region == first.region else there for one in named}
    found = [one for one in pools(spec, START.date(), read) if one.prepaid]
    assert [one.nodes for one in found] == [3, 2, 4]
    assert not [note for note in reservation_notes(found, read) if "max_nodes" in note]


@pytest.mark.parametrize(
    ("id", "kind"),
    [
        (f"projects/{ID}/reservations/h100", "block"),
        (f"projects/{ID}/zones/us-central1-a/reservations/h100", "reserved"),
    ],
)
def test_a_reservation_of_google_has_the_times_that_it_exists(id: str, kind: str) -> None:
    row = {
        "name": "h100",
        "status": "READY",
        "creationTimestamp": "2026-08-01T02:00:00.000+02:00",
        "deleteAtTime": "2026-08-11T00:00:00Z",
        "specificReservation": {
            "count": "4",
            "inUseCount": "1",
            "instanceProperties": {"machineType": "a3-megagpu-8g"},
        },
    }
    elsewhere = {**row, "specificReservation": {"count": "9"}}
    zones = {
        "zones/europe-west4-b": {"reservations": [elsewhere]},
        "zones/us-central1-a": {"reservations": [row]},
    }
    google = Google({RESERVATIONS: {"items": zones}})
    wanted = pool(kind, 4, cloud="gcp", region="us-central1", reservation=id)
    (found,) = google_described([wanted], google.session())
    assert isinstance(found, ReservedCapacity) and found.machine == "a3-megagpu-8g"
    assert (found.nodes, found.free, found.span) == (4, 3, TimeSpan(START, START + 10 * DAY))
    google.said[RESERVATIONS] = {"items": {}}
    (gone,) = google_described([wanted], google.session())
    google.said[RESERVATIONS] = DENIED
    (denied,) = google_described([wanted], google.session())
    assert [one.code for one in (gone, denied) if isinstance(one, Problem)] == [
        "reservation-not-found",
        "reservation-not-readable",
    ]


def test_a_block_over_its_term_has_what_was_paid_and_not_held() -> None:
    """10 days of 2 nodes, of which one is held; the ledger ends two days before the block."""
    period = TimeSpan(START + 20 * DAY, START + 30 * DAY)
    (one,) = commitment_uses([pool("block", 2, period=period)], past(lambda _: 1.0, 28))
    assert (one.committed_hours, one.held_hours) == (8 * 2 * 8 * 24, 8 * 8 * 24)
    assert one.unused_usd == pytest.approx(8 * 8 * 24 * 1.5) and one.utilization == 0.5
    assert one.to_come_hours == 2 * 2 * 8 * 24 and one.to_come_usd == pytest.approx(2 * 2 * 8 * 24 * 1.5)
    (open_end,) = commitment_uses([pool("reserved", 2)], past(lambda _: 1.0, 28))
    assert open_end.to_come_hours is None and open_end.to_come_usd is None


def job(name: str, until: datetime.datetime | None, pools: tuple[str, ...] = ("a100",)) -> RunningJob:
    return RunningJob(name, "Research", pools, 8.0, until, checkpoints=None)


@pytest.mark.parametrize(("cloud", "minutes"), [("aws", 40), ("gcp", 10)])
def test_jobs_that_may_still_run_at_the_end_of_a_block_are_named(cloud: str, minutes: int) -> None:
    end = START + 3 * DAY
    stops = end - datetime.timedelta(minutes=minutes)
    block = pool("block", 2, period=TimeSpan(START, end), cloud=cloud)
    running = [job("in time", stops), job("late", end), job("endless", None), job("other", None, ("l4",))]
    (found,) = endings([block], running, START + DAY)
    assert (found.end, found.stops) == (end, stops)
    assert [one.name for one in found.over or ()] == ["late", "endless"]
    (unread,) = endings([block], None, START + DAY)
    assert unread.over is None
    assert not [*endings([block], running, end)]


def test_a_plan_with_two_parts_ends_twice_and_a_reservation_ends_no_machine() -> None:
    plan, _ = plan_pool(PLAN)
    first, second = endings([plan], [], START)
    assert (first.end, second.end) == (START + 3 * DAY, START + 9 * DAY)
    assert first.stops == first.end - datetime.timedelta(minutes=30)
    limited = pool("reserved", 2, period=TimeSpan(None, START + DAY))
    (one,) = endings([limited], [job("endless", None)], START)
    assert one.stops is None and one.over == ()


def test_machines_of_a_service_have_no_size_that_a_ledger_could_exceed() -> None:
    known = past(lambda _: 4.0, 30)
    managed = replace(pool(), max_nodes=None)
    assert not [note for note in notes([managed], known) if "max_nodes" in note]


def test_segments_of_one_reservation_give_its_span_and_size() -> None:
    parts = (CapacitySegment(TimeSpan(START, START + DAY), 1), CapacitySegment(TimeSpan(START, None), 3))
    found = ReservedCapacity("cr-1", "active", "p4d.24xlarge", parts)
    assert (found.span, found.nodes) == (TimeSpan(START, None), 3)
