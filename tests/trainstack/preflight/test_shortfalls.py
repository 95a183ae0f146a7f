"""Quotas of a scenario end a rehearsed deployment in the words of its cloud."""

import pytest
from typer.testing import CliRunner

from infra import stackspec
from infra.engine.golang import ROOT
from infra.errors import UserError
from infra.stackspec.layouts import SmallLayout
from tests.trainstack.preflight.gcp.asking import ID, spec
from trainstack.cli.app import app
from trainstack.preflight.aws.deployment import beyond as beyond_aws
from trainstack.preflight.aws.needs import needs
from trainstack.preflight.gcp.deployment import beyond


def test_a_new_project_of_google_cloud_refuses_gpus_in_its_words() -> None:
    short = {one.key: one for one in beyond(spec(), {"gpus_all_regions": 0, "h100_mega": 8}, largest=False)}
    assert short["gpus_all_regions"].message == "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally."
    assert short["h100_mega"].message.endswith("Limit: 8.0 in region us-central1.")
    assert "16 GPU wanted, 8" in str(short["h100_mega"])
    assert f"--project={ID}" in short["h100_mega"].fix and "--preferred-value=16" in short["h100_mega"].fix


def test_a_stack_at_its_largest_takes_more_than_its_first_deployment() -> None:
    assert beyond(spec(), {"h100_mega": 16}, largest=False) == []
    (short,) = beyond(spec(), {"h100_mega": 16}, largest=True)
    assert "32 GPU wanted" in str(short)


def test_the_worst_comes_first() -> None:
    allowed = {"gpus_all_regions": 12, "networks": 2, "h100_mega": 0}
    found = beyond(spec(), allowed, largest=True)
    assert [short.key for short in found] == ["h100_mega", "networks", "gpus_all_regions"]


def test_quotas_that_no_scenario_names_refuse_nothing() -> None:
    assert beyond(spec(), {}, largest=True) == []


def test_an_account_without_any_quota_names_all_of_a_small_stack_and_creates_nothing() -> None:
    """The scenario that ships, at the door of the command: nothing runs, not even an engine."""
    file = str(ROOT / "rehearsal" / "scenarios" / "new-account.yaml")
    done = CliRunner().invoke(app, ["up", "-s", "small-aws", "--rehearse", "--yes", "--faults", file])
    assert isinstance(done.exception, UserError)
    found = {problem.path.removeprefix("quota "): problem for problem in done.exception.problems}
    gate = "ml.g6.xlarge for training job usage"
    assert set(found) == {"sagemaker_domains", "sagemaker_user_profiles", gate}
    assert found[gate].rule.startswith(
        f"ResourceLimitExceeded: The account-level service limit '{gate}' is 0 Instances, with current "
        "utilization of 0 Instances and a request delta of 2 Instances"
    )
    assert all("--desired-value" in problem.fix for problem in found.values())


def test_quotas_of_nothing_refuse_everything_that_a_stack_takes() -> None:
    for name in ("small-aws", "dev-aws", "small-eks-aws"):
        loaded = stackspec.load_file(name).spec
        taken = {one.key for one in needs(loaded).now}
        found = beyond_aws(loaded, dict.fromkeys(taken, 0), largest=False)
        assert {one.key for one in found} == taken
        assert all("request-service-quota-increase" in one.fix for one in found)


@pytest.mark.parametrize(
    ("changes", "key", "asked"),
    [
        ({"max_hours": 200.0}, "sagemaker_run_seconds", "--quota-code L-33A961FD --desired-value 720000"),
        ({}, "", ""),
    ],
)
def test_jobs_above_the_default_limits_of_accounts_are_reported_before_anything_is_created(
    changes: dict[str, float], key: str, asked: str
) -> None:
    """A preview has no account to ask: 432,000 seconds and 4 machines of all jobs, by public listings."""
    loaded = stackspec.load_file("small-aws").spec
    changed = loaded.model_copy(update={"layout": loaded.layout.model_copy(update=changes)})
    found = {one.key: one for one in beyond_aws(changed, {}, largest=True)}
    assert set(found) == ({key} if key else set())
    assert not key or asked in found[key].fix


def test_more_machines_in_a_job_than_an_account_has_for_all_are_reported() -> None:
    loaded = stackspec.load_file("small-aws").spec
    assert isinstance(loaded.layout, SmallLayout)
    machines = tuple(one.model_copy(update={"max_nodes": 5}) for one in loaded.layout.machines)
    changed = loaded.model_copy(update={"layout": loaded.layout.model_copy(update={"machines": machines})})
    found = {one.key for one in beyond_aws(changed, {}, largest=True)}
    assert found == {"sagemaker_training_instances", "sagemaker_spot_training_instances"}


def test_aws_speaks_in_its_own_words() -> None:
    loaded = stackspec.load_file("dev-aws").spec
    (short,) = beyond_aws(loaded, {"ec2_on_demand_p": 0}, largest=False)
    assert short.message.startswith("VcpuLimitExceeded: ") and "--service-code ec2" in short.fix
