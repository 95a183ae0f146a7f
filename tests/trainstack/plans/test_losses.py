"""User data that a plan deletes, and data that stays."""

import pytest

from infra.engine.plan import PlannedStep
from trainstack.plans.losses import keeps, losses, lowered, retained, shrinks

APP, BUCKET = "aws:sagemaker/mlflowApp:MlflowApp", "aws:s3/bucket:Bucket"


def said(operation: str, kind: str = APP, *changed: str) -> list[str]:
    return list(losses([PlannedStep(operation, kind, "it", changed, {})]))


def test_what_is_deleted_is_named_with_what_is_in_it() -> None:
    (line,) = said("delete")
    assert line.startswith("it (MlflowApp) ") and "docs/how-to/growing.md" in line


def test_what_is_replaced_is_lost_as_well_and_says_why() -> None:
    (line,) = said("replace", BUCKET, "bucket")
    assert line.startswith("it (Bucket) ") and line.endswith(" bucket")


@pytest.mark.parametrize(
    ("operation", "kind"), [("update", APP), ("create", APP), ("delete", "aws:ec2/vpc:Vpc")]
)
def test_nothing_else_is_a_loss(operation: str, kind: str) -> None:
    assert said(operation, kind) == []


@pytest.mark.parametrize(
    ("before", "after", "shrunk"), [(1024, 100, True), (100, 1024, False), (100.0, 100, False)]
)
def test_homes_that_get_smaller_are_named(before: float, after: float, *, shrunk: bool) -> None:
    now, then = ({"fileShares": {"capacityGb": size}} for size in (after, before))
    step = PlannedStep(
        "update", "gcp:filestore/instance:Instance", "homes", ("fileShares.capacityGb",), now, then
    )
    assert len(list(shrinks([step]))) == shrunk


@pytest.mark.parametrize(
    ("operation", "kind", "stays"), [("delete", BUCKET, 1), ("replace", BUCKET, 1), ("delete", "a:b:C", 0)]
)
def test_data_that_the_engine_leaves_in_the_cloud_is_not_lost(operation: str, kind: str, stays: int) -> None:
    steps = [PlannedStep(operation, kind, "it", (), {}, retained=True)]
    assert list(losses(steps)) == []
    assert len(list(retained(steps))) == stays
    assert list(retained([PlannedStep(operation, kind, "it", (), {})])) == []


@pytest.mark.parametrize(
    ("before", "after", "falls"), [("15k", "10k", True), ("15000", "15k", False), ("5k", "15k", False)]
)
def test_a_limit_of_a_team_that_falls_is_named(before: str, after: str, *, falls: bool) -> None:
    new, old = ({"spec": {"hard": {"count/jobs.batch": most, "pods": "5k"}}} for most in (after, before))
    quota = "kubernetes:core/v1:ResourceQuota"
    step = PlannedStep("update", quota, "vision-objects", ("spec.hard",), new, before=old)
    assert len(list(lowered([step]))) == falls


def test_a_limit_of_running_pods_below_that_of_all_pods_is_named() -> None:
    old, new = ({"spec": {"hard": {key: most}}} for key, most in (("count/pods", "30k"), ("pods", "20k")))
    step = PlannedStep("update", "kubernetes:core/v1:ResourceQuota", "objects", (), new, before=old)
    (line,) = lowered([step])
    assert "30k" in line and "20k" in line


def test_kept_data_is_listed_by_kind() -> None:
    kept = [(BUCKET, "b"), ("aws:ec2/vpc:Vpc", "vpc"), (BUCKET, "a"), ("aws:kms/key:Key", "key")]
    assert list(keeps(kept)) == ["Bucket: a, b", "Key: key"]
