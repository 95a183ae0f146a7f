"""A stack file becomes a spec, or every reason why not."""

from pathlib import Path

import pytest

from infra import stackspec
from infra.errors import UserError
from infra.stackspec.clouds import AwsSpec
from infra.stackspec.layouts import MediumLayout
from infra.stackspec.load import CONFIG
from tests.infra.stackspec.stack_files import Values, paths, problems


def test_the_profile_supplies_what_the_file_leaves_out(values: Values) -> None:
    loaded = stackspec.load("dev", values, "Pulumi.dev.yaml")
    assert loaded.spec.name == "dev"
    assert isinstance(loaded.spec.on, AwsSpec) and loaded.spec.on.nat == "single"
    assert loaded.spec.smoke.accept == ("PASS",)


def test_a_day_needs_no_quotes(tmp_path: Path) -> None:
    shipped = (CONFIG / "Pulumi.dev-aws.yaml").read_text()
    (tmp_path / "Pulumi.dev.yaml").write_text(shipped.replace("expires_on: never", "expires_on: 2027-03-31"))
    assert stackspec.load_file("dev", tmp_path).spec.expires_on == "2027-03-31"


def test_the_file_overrides_the_profile_and_explain_knows_who_said_what(values: Values) -> None:
    values["spec"]["on"]["nat"] = "per_zone"
    loaded = stackspec.load("dev", values, "Pulumi.dev.yaml")
    assert isinstance(loaded.spec.on, AwsSpec) and loaded.spec.on.nat == "per_zone"
    (nat,) = loaded.explain("on.nat")
    assert nat.origin.source == "Pulumi.dev.yaml" and "single point of failure" in nat.description
    (machine,) = loaded.explain("layout.system_pool.machine")
    assert machine.origin.source == "profiles/medium.aws.yaml"
    (cidr,) = loaded.explain("layout.network_cidr")
    assert cidr.origin.source == "profiles/medium.yaml"
    assert cidr.origin.line and cidr.origin.reason and "address per pod" in cidr.origin.reason
    (kind,) = loaded.explain("layout.pools[0].purchase.kind")
    assert (kind.value, kind.description) == ("on_demand", "`on_demand`")
    (disk,) = loaded.explain("layout.pools[0].disk_gib")
    assert (disk.value, disk.origin.source) == (300, "default of the spec")
    assert "GiB" in disk.description


def test_every_default_of_a_profile_gives_its_reason(values: Values) -> None:
    loaded = stackspec.load("dev", values, "f")
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
    wanted["layout"]["zonez"] = ["us-east-1a"]
    wanted["layout"]["pools"][0]["purchase"] = {"kind": "sport"}
    wanted["layout"]["pools"][0]["zones"] = ["us-east-1a", "us-east-1b"]
    wanted["budget"]["monthly_usd"] = 0
    wanted["data"]["shared_fs"] = {
        "capacity_gib": 1300,
        "throughput_mb_s_per_tib": 125,
        "zone": "us-east-1a",
    }
    found = problems(values)
    by_path = {problem.path: problem for problem in found}
    assert {
        "layout.zonez",
        "layout.pools[0].purchase.kind",
        "layout.pools[0].zones",
        "budget.monthly_usd",
        "data.shared_fs",
    } <= set(by_path)
    assert "`zones`" in by_path["layout.zonez"].fix
    assert by_path["layout.pools[0].purchase.kind"].value == "sport"
    assert "`spot`" in by_path["layout.pools[0].purchase.kind"].fix
    assert all(problem.rule and problem.fix and problem.origin for problem in found)


def test_missing_and_unknown_settings_are_told_together(values: Values) -> None:
    del values["region"]
    values["sizing"] = "large"
    assert paths(values) == {"trainstack:region", "trainstack:sizing"}


def test_a_stack_without_a_file_names_those_that_have_one() -> None:
    with pytest.raises(UserError, match="dev-aws"):
        stackspec.load_file("nowhere")


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
        stackspec.load_file("dev", tmp_path)
    assert rule in str(caught.value)


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_bytes(b"config: \xff\xfe")
    with pytest.raises(UserError, match="UTF-8"):
        stackspec.load_file("dev", tmp_path)


def test_explain_names_near_keys(values: Values) -> None:
    with pytest.raises(UserError, match=r"on\.nat"):
        stackspec.load("dev", values, "f").explain("on.natt")


def test_the_shipped_environment_loads() -> None:
    loaded = stackspec.load_file("dev-aws")
    assert isinstance(loaded.spec.layout, MediumLayout)
    assert {pool.name for pool in loaded.spec.layout.pools} == {"a100", "l4", "cpu"}


def test_the_wrong_arm_of_a_union_is_named_with_the_arm_that_has_the_key(values: Values) -> None:
    values["spec"]["on"]["project"] = "research-1"
    values["spec"]["layout"]["scheduler"] = "slurm"
    values["spec"]["layout"]["pools"][0]["purchase"] = {"kind": "spot", "id": "cr-0123456789abcdef0"}
    found = {problem.path: str(problem) for problem in problems(values)}
    assert "a key of cloud gcp, and cloud is aws" in found["on.project"]
    assert "a key of profile large, and profile is medium" in found["layout.scheduler"]
    assert "a key of kind reserved or block, and kind is spot" in found["layout.pools[0].purchase.id"]


def test_a_wrong_item_does_not_make_its_list_empty(values: Values) -> None:
    values["spec"]["budget"]["alert_emails"] = ["not an address"]
    (problem,) = problems(values)
    assert problem.path == "budget.alert_emails[0]"
    assert "must be an e-mail address such as" in problem.rule and "pattern" not in str(problem)
