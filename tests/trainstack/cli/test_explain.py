"""`trainstack explain` prints value, layer, reason and meaning."""

from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from tests.trainstack.cli.command import run, run_json
from trainstack.cli import access
from trainstack.cli.app import app
from trainstack.cli.operations import session


@pytest.mark.parametrize("stack", ["dev-aws", "dev-gcp", "prod-gcp", "small-eks-aws", "small-aws"])
def test_without_a_key_everything_is_explained(stack: str) -> None:
    code, said = run("explain", "-s", stack)
    assert code == 0
    values = [line for line in said.splitlines() if " = " in line and not line.startswith(" ")]
    assert len(values) > 80
    assert said.count("    from    ") == said.count("    meaning ") == len(values)


def test_a_value_of_google_cloud_is_explained_with_its_layer_and_reason() -> None:
    code, said = run("explain", "-s", "dev-gcp", "on.maintenance.hold_nodes")
    assert code == 0
    value, layer, reason, meaning = said.splitlines()
    assert value == "on.maintenance.hold_nodes = true"
    assert "profiles/medium.gcp.yaml:" in layer
    assert "ends the runs" in reason and "drains" in meaning


@pytest.mark.parametrize("key", ["layout.pools[0].purchase.kind", "layout.monitoring.kind"])
def test_the_kind_of_a_choice_has_a_reason_and_a_meaning_beyond_its_name(key: str) -> None:
    _, said = run("explain", key, "-s", "dev-aws")
    value, _, reason, meaning = said.splitlines()
    assert reason.split()[0] == "reason" and len(meaning.split()) > 5
    assert value.endswith('"')


def test_a_stack_that_was_not_chosen_is_named() -> None:
    _, said = run("explain", "budget.anomaly_usd")
    assert "dev-aws" in said and " = null" in run("explain", "tracking", "-s", "small-aws")[1]


def test_env_and_login_of_a_rehearsal_are_those_of_dev_aws_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def workspace(stack: str) -> SimpleNamespace:
        asked.append(stack)
        return SimpleNamespace(environment={"A": "b c"})

    def deployed(stack: str, *, rehearse: bool) -> tuple[str, bool]:
        asked.append(stack)
        return stack, rehearse

    monkeypatch.setattr(session, "checkout_workspace", workspace)
    monkeypatch.setattr(access, "deployed", deployed)
    monkeypatch.setattr(access, "show_rehearsed", lambda *_, **__: None)
    done = CliRunner().invoke(app, ["rehearse", "env"])
    assert done.exit_code == 0 and done.stdout.splitlines()[-1] == "export A='b c'"
    assert "dev-aws" in done.stderr and "dev-aws" not in done.stdout
    assert run("rehearse", "login")[0] == 0
    assert asked == ["dev-aws", "dev-aws"]


def test_a_key_of_the_other_cloud_is_refused_with_near_ones() -> None:
    with pytest.raises(UserError, match=r"on\.admins"):
        run("explain", "-s", "dev-gcp", "on.admin_arns")


def test_the_budget_of_a_cluster_names_the_whole_stack_and_its_part() -> None:
    """Clusters of one cloud share a budget; one on another cloud has a part of it."""
    _, said = run("explain", "budget.monthly_usd", "-s", "large-aws-use1")
    assert "    of      the whole stack large-aws" in said
    _, said = run("explain", "budget.monthly_usd", "-s", "large-mixed-usc1")
    assert "cluster usc1, a part of the budget of the whole stack large-mixed" in said
    assert "whole stack" not in run("explain", "budget.monthly_usd", "-s", "dev-aws")[1]


def test_the_cost_of_a_cluster_shows_its_part_of_the_whole() -> None:
    code, document = run_json("cost", "-s", "large-aws-use1")
    whole = run_json("cost", "-s", "large-aws")[1]
    assert code == 0 and document["budget_of"] == whole["budget_of"] == "large-aws"
    part = document["price"]["expected_usd"] / whole["price"]["expected_usd"]
    assert f"of which {part:.0%} in this cluster" in run("cost", "-s", "large-aws-use1")[1]
    assert run_json("cost", "-s", "large-mixed-usc1")[1]["budget_of"] == "large-mixed-usc1"
