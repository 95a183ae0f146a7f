"""A stack file becomes a spec, or every reason why not."""

import copy
from pathlib import Path
from typing import Any

import pytest

from infra import spec
from infra.errors import Problem, UserError

Values = dict[str, Any]


@pytest.fixture
def values() -> Values:
    """What a small but complete stack file says."""
    digest = "@sha256:" + "a" * 64
    return {
        "cloud": "aws",
        "profile": "medium",
        "region": "us-east-1",
        "spec": {
            "owner": "a@example.com",
            "cost_center": "research",
            "network": {"zones": ["us-east-1a", "us-east-1b"]},
            "cluster": {"admin_principal_arns": ["arn:aws:iam::123456789012:role/platform"]},
            "pools": [
                {
                    "name": "a100",
                    "instance_type": "p4d.24xlarge",
                    "purpose": "training",
                    "capacity": "on_demand",
                    "zones": ["us-east-1b"],
                    "efa": True,
                    "max_size": 4,
                }
            ],
            "storage": {"lustre": None},
            "teams": [{"name": "Research", "gpus": {"a100": 8}, "monthly_budget_usd": 1000}],
            "budget": {"monthly_usd": 5000, "alert_emails": ["a@example.com"]},
            "tracking": {"image": "registry.example.com/mlflow" + digest},
            "smoke": {"pool": "a100", "image": "registry.example.com/torch" + digest},
        },
    }


def problems(values: Values) -> list[Problem]:
    with pytest.raises(UserError) as caught:
        spec.load("dev", values, "Pulumi.dev.yaml")
    return list(caught.value.problems)


def paths(values: Values) -> set[str]:
    return {problem.path for problem in problems(values)}


def test_the_profile_supplies_what_the_file_leaves_out(values: Values) -> None:
    loaded = spec.load("dev", values, "Pulumi.dev.yaml")
    assert loaded.spec.name == "dev"
    assert loaded.spec.network.nat == "single"
    assert loaded.spec.smoke.accept == ("PASS",)


def test_the_file_overrides_the_profile_and_explain_knows_who_said_what(values: Values) -> None:
    values["spec"]["network"]["nat"] = "per_zone"
    loaded = spec.load("dev", values, "Pulumi.dev.yaml")
    assert loaded.spec.network.nat == "per_zone"
    (nat,) = loaded.explain("network.nat")
    assert nat.origin.source == "Pulumi.dev.yaml"
    (cidr,) = loaded.explain("network.cidr")
    assert cidr.origin.source == "profiles/medium.aws.yaml"
    assert cidr.origin.line and cidr.origin.reason and "address per pod" in cidr.origin.reason
    (disk,) = loaded.explain("pools[0].disk_gib")
    assert (disk.value, disk.origin.source) == (300, "default of the spec")
    assert "GiB" in disk.description


def test_every_default_of_a_profile_gives_its_reason(values: Values) -> None:
    loaded = spec.load("dev", values, "f")
    silent = [
        found.path
        for found in loaded.explain("")
        if found.origin.source.startswith("profiles/")
        and not found.origin.reason
        and not found.path.endswith((".name", ".description"))
    ]
    assert silent == []


def test_all_problems_are_told_at_once_with_path_value_rule_and_fix(values: Values) -> None:
    wanted = values["spec"]
    wanted["network"]["zonez"] = ["us-east-1a"]
    wanted["pools"][0]["capacity"] = "sometimes"
    wanted["pools"][0]["zones"] = ["us-east-1a", "us-east-1b"]
    wanted["budget"]["monthly_usd"] = 0
    wanted["storage"]["lustre"] = {
        "capacity_gib": 1300,
        "throughput_mb_s_per_tib": 125,
        "zone": "us-east-1a",
    }
    found = problems(values)
    by_path = {problem.path: problem for problem in found}
    assert {"network.zonez", "pools[0].capacity", "budget.monthly_usd", "storage.lustre"} <= set(by_path)
    assert "`zones`" in by_path["network.zonez"].fix
    assert by_path["pools[0].capacity"].value == "sometimes"
    assert all(problem.rule and problem.fix for problem in found)


BROKEN: dict[str, tuple[Any, ...]] = {
    "efa on a type without it": (("pools", 0, "instance_type"), "g5.xlarge", "pools[0].efa"),
    "efa over several zones": (("pools", 0, "zones"), ["us-east-1a", "us-east-1b"], "pools[0].efa"),
    "a zone of another region": (("network", "zones"), ["us-east-1a", "eu-west-1b"], "network.zones[1]"),
    "a zone twice": (("network", "zones"), ["us-east-1b", "us-east-1b"], "network.zones"),
    "a pool zone without a subnet": (("pools", 0, "zones"), ["us-east-1f"], "pools[0].zones[0]"),
    "an unknown type": (("pools", 0, "instance_type"), "p9.48xlarge", "pools[0].instance_type"),
    "a public range": (("network", "cidr"), "8.8.0.0/16", "network.cidr"),
    "a small range": (("network", "cidr"), "10.0.0.0/24", "network.cidr"),
    "host bits in the range": (("network", "cidr"), "10.0.0.1/16", "network.cidr"),
    "an open API server": (
        ("cluster",),
        {"public_access_cidrs": ["0.0.0.0/0"]},
        "cluster.public_access_cidrs[0]",
    ),
    "an old Kubernetes": (("cluster", "kubernetes_version"), "1.19", "cluster.kubernetes_version"),
    "a block without reservation": (("pools", 0, "capacity"), "capacity_block", "pools[0].reservation_id"),
    "spot with a reservation": (
        ("pools", 0, "reservation_id"),
        "cr-0123456789abcdef0",
        "pools[0].reservation_id",
    ),
    "more at least than at most": (("pools", 0, "min_size"), 5, "pools[0].min_size"),
    "a budget of nothing": (("budget", "monthly_usd"), 0, "budget.monthly_usd"),
    "a negative budget": (("teams", 0, "monthly_budget_usd"), -1, "teams[0].monthly_budget_usd"),
    "teams that outspend the stack": (("teams", 0, "monthly_budget_usd"), 9999, "budget.monthly_usd"),
    "a quota on no pool": (("teams", 0, "gpus"), {"h100": 1}, "teams[0].gpus.h100"),
    "quotas beyond the pool": (("teams", 0, "gpus"), {"a100": 17}, "pools[0].max_size"),
    "a smoke test on no pool": (("smoke", "pool"), "h100", "smoke.pool"),
    "a smoke test beyond the pool": (("smoke", "nodes"), 5, "smoke.nodes"),
    "a gate that opens for nobody": (("smoke", "accept"), ["INCONCLUSIVE"], "smoke.accept"),
    "a schedule that nobody can read": (("smoke", "schedule"), "every monday", "smoke.schedule"),
    "a schedule without end": (("smoke", "schedule"), "*/5 * * * *", "smoke.schedule"),
    "a schedule that repeats no gate": (("smoke", "enabled"), False, "smoke.schedule"),
    "an image without digest": (("smoke", "image"), "registry.example.com/torch:latest", "smoke.image"),
    "an address that is none": (("owner",), "nobody", "owner"),
    "nobody to administer it": (("cluster", "admin_principal_arns"), [], "cluster.admin_principal_arns"),
    "no teams": (("teams",), [], "teams"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_deployed_is_refused_by_name(values: Values, case: str) -> None:
    spec.load("dev", copy.deepcopy(values), "f")  # it is this change, and nothing else, that breaks it
    steps, value, path = BROKEN[case]
    place = values["spec"]
    for step in steps[:-1]:
        place = place[step]
    place[steps[-1]] = value
    assert path in paths(values)


def test_teams_that_become_one_namespace_are_refused(values: Values) -> None:
    team = values["spec"]["teams"][0]
    values["spec"]["teams"] = [
        {**team, "name": "Vision Lab", "gpus": {}},
        {**team, "name": "vision_lab", "gpus": {}},
    ]
    (problem,) = problems(values)
    assert problem.path == "teams[1].name"
    assert "'team-vision-lab'" in problem.rule


def test_missing_and_unknown_settings_are_told_together(values: Values) -> None:
    del values["region"]
    values["sizing"] = "large"
    assert paths(values) == {"trainstack:region", "trainstack:sizing"}


def test_an_unknown_profile_names_those_that_exist(values: Values) -> None:
    values["profile"] = "gigantic"
    (problem,) = problems(values)
    assert "medium.aws" in problem.fix


def test_a_stack_without_a_file_names_those_that_have_one() -> None:
    with pytest.raises(UserError, match="dev-aws"):
        spec.load_file("nowhere")


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("config: [unclosed", "not valid YAML"),
        ("config:\n  a: 1\n  a: 2\n", "not valid YAML"),
        ("just a string", "under the key `config`"),
        ("", "under the key `config`"),
    ],
)
def test_an_unreadable_file_is_refused(tmp_path: Path, content: str, rule: str) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(content)
    with pytest.raises(UserError) as caught:
        spec.load_file("dev", tmp_path)
    assert rule in str(caught.value)


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_bytes(b"config: \xff\xfe")
    with pytest.raises(UserError, match="UTF-8"):
        spec.load_file("dev", tmp_path)


def test_explain_names_near_keys(values: Values) -> None:
    with pytest.raises(UserError, match=r"network\.nat"):
        spec.load("dev", values, "f").explain("network.natt")


def test_the_shipped_environment_loads() -> None:
    loaded = spec.load_file("dev-aws")
    assert {pool.name for pool in loaded.spec.pools} == {"a100", "l4"}
