"""Quotas of a scenario end a rehearsed deployment in the words of its cloud."""

from infra import stackspec
from tests.trainstack.preflight.gcp.asking import ID, spec
from trainstack.preflight.aws.deployment import beyond as beyond_aws
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


def test_aws_speaks_in_its_own_words() -> None:
    loaded = stackspec.load_file("dev-aws").spec
    (short,) = beyond_aws(loaded, {"ec2_on_demand_p": 0}, largest=False)
    assert short.message.startswith("VcpuLimitExceeded: ") and "--service-code ec2" in short.fix
