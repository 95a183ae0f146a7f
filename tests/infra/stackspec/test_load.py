"""A stack file becomes a spec, or every reason why not."""

import copy
import re
from pathlib import Path

import pytest

from infra import stackspec
from infra.errors import UserError
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.document import read
from infra.stackspec.layouts import ClusterLayout
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


def test_a_day_without_quotes_comes_from_the_engine_as_go_prints_it(values: Values) -> None:
    values["spec"]["expires_on"] = "2027-03-31 00:00:00 +0000 UTC"
    assert stackspec.load("dev", values, "Pulumi.dev.yaml").spec.expires_on == "2027-03-31"


def test_the_file_overrides_the_profile_and_explain_names_the_origin(values: Values) -> None:
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
    assert kind.value == "on_demand" and len(kind.description.split()) > 3
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


def test_all_problems_are_reported_at_once_with_path_value_rule_and_fix(values: Values) -> None:
    wanted = values["spec"]
    wanted["layout"]["zonez"] = ["us-east-1a"]
    wanted["layout"]["pools"][0]["purchase"] = {"kind": "sport"}
    wanted["layout"]["pools"][0]["zones"] = ["us-east-1a", "us-east-1b"]
    wanted["budget"]["monthly_usd"] = 0
    wanted["data"]["shared_fs"] = {"capacity_gib": 1300, "throughput_mb_s_per_tib": 125, "zone": "us-east-1a"}
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


def test_the_fix_of_a_value_that_is_no_mapping_has_its_required_keys(values: Values) -> None:
    values["spec"]["data"]["shared_fs"] = "large"
    (problem,) = problems(values)
    assert (problem.path, problem.code) == ("data.shared_fs", "model-type")
    assert "capacity_gib, throughput_mb_s_per_tib, zone" in problem.fix


def test_missing_and_unknown_settings_are_reported_together(values: Values) -> None:
    del values["region"]
    values["sizing"] = "large"
    assert paths(values) == {"trainstack:region", "trainstack:sizing"}


def test_a_stack_without_a_file_names_those_that_have_one() -> None:
    with pytest.raises(UserError, match="dev-aws"):
        stackspec.load_file("nowhere")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("config: [unclosed", "invalid-yaml"),
        ("config:\n  a: 1\n  a: 2\n", "duplicate-key"),
        ("just a string", "stack-file-without-config"),
        ("", "stack-file-without-config"),
        (b"config: \xff\xfe", "file-not-utf8"),
    ],
)
def test_an_unreadable_file_is_refused(tmp_path: Path, content: str | bytes, code: str) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as caught:
        stackspec.load_file("dev", tmp_path)
    assert caught.value.codes == ((code, "Pulumi.dev.yaml"),)


def test_explain_names_near_keys(values: Values) -> None:
    with pytest.raises(UserError, match=r"on\.nat"):
        stackspec.load("dev", values, "f").explain("on.natt")


STACKS = sorted(path.name.split(".")[1] for path in CONFIG.glob("Pulumi.*.yaml"))


@pytest.mark.parametrize("stack", STACKS)
def test_the_meaning_of_a_value_is_more_than_the_value(stack: str) -> None:
    """At least four words, and more than the value in other marks."""
    for found in stackspec.load_file(stack).explain(""):
        words = re.findall(r"\w\S*", found.description)
        assert len(words) >= 4, (found.path, found.description)
        assert words != re.findall(r"\w\S*", str(found.value)), found.path


@pytest.mark.parametrize("stack", STACKS)
def test_every_key_of_a_shipped_stack_is_explained(stack: str) -> None:
    """Value, layer and description of each key, also by its own path."""
    loaded = stackspec.load_file(stack)
    listed = loaded.explain("")
    assert len(listed) > 80
    for found in listed:
        assert found.description, found.path
        assert found.origin.source
        (same,) = [one for one in loaded.explain(found.path) if one.path == found.path]
        assert same == found
    # Values of profiles and overlays have a reason.
    layered = [found for found in listed if found.origin.source.startswith("profiles/")]
    assert layered and all(found.origin.reason for found in layered)


def test_explain_includes_gke_settings_of_a_pool() -> None:
    loaded = stackspec.load_file("prod-gcp")
    (clients,) = loaded.explain("on.pools.l4.sharing.clients")
    assert (clients.value, clients.description) == (2, "Maximum number of pods per GPU.")
    (compact,) = loaded.explain("on.pools.l4.compact")
    assert compact.value is False and compact.origin.source == "default of the spec"
    (idle,) = loaded.explain("layout.idle_minutes")
    assert idle.value is None and idle.origin.source == "profiles/medium.gcp.yaml"
    assert idle.origin.reason and "autoscaler" in idle.origin.reason


@pytest.mark.parametrize(
    ("pool", "path", "code"),
    [
        (
            {"sharing": {"kind": "time_sharing", "clients": 1}},
            "on.pools.l4.sharing.clients",
            "greater-than-equal",
        ),
        ({"sharing": {"kind": "time_sharing"}}, "on.pools.l4.sharing.clients", "required-key-missing"),
        ({"sharing": {"kind": "turns"}}, "on.pools.l4.sharing.kind", "no-such-choice"),
        (
            {"sharing": {"kind": "time_sharing", "clients": 2, "partition": "1g.5gb"}},
            "on.pools.l4.sharing.partition",
            "key-of-other-choice",
        ),
        ({"drivr": "latest"}, "on.pools.l4.drivr", "unknown-key"),
        ({"driver": "newest"}, "on.pools.l4.driver", "literal-error"),
    ],
)
def test_an_invalid_pool_setting_is_refused_at_its_path(pool: Values, path: str, code: str) -> None:
    settings = read(CONFIG / "Pulumi.dev-gcp.yaml", "f")["config"]
    values = copy.deepcopy({name.removeprefix("trainstack:"): value for name, value in settings.items()})
    values["spec"]["on"]["pools"]["l4"] = pool
    problem = next(one for one in problems(values) if one.path == path)
    assert (problem.code, problem.path) == (code, path) and problem.fix


def test_the_shipped_environment_loads() -> None:
    loaded = stackspec.load_file("dev-aws")
    assert isinstance(loaded.spec.layout, ClusterLayout)
    assert {pool.name for pool in loaded.spec.layout.pools} == {"a100", "l4", "cpu"}


def test_the_wrong_arm_of_a_union_is_named_with_the_arm_that_has_the_key(values: Values) -> None:
    values["spec"]["on"]["project"] = "research-1"
    values["spec"]["layout"]["scheduler"] = "slurm"
    values["spec"]["layout"]["pools"][0]["purchase"] = {"kind": "spot", "id": "cr-0123456789abcdef0"}
    found = {problem.path: problem for problem in problems(values)}
    for path, arm in {
        "on.project": "gcp",
        "layout.scheduler": "large",
        "layout.pools[0].purchase.id": "block",
    }.items():
        assert found[path].code == "key-of-other-choice" and arm in found[path].rule


def test_a_wrong_item_does_not_make_its_list_empty(values: Values) -> None:
    values["spec"]["budget"]["alert_emails"] = ["not an address"]
    (problem,) = problems(values)
    assert problem.path == "budget.alert_emails[0]"
    assert problem.code == "string-pattern-mismatch"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("trainstack:profile: medium", "trainstack:profile: gone", "no-such-choice"),
        ("trainstack:region: ", "trainstack:zone: ", "required-setting-missing"),
        ("expires_on: never", "expires_on: [1]", "string-type"),
    ],
)
def test_a_deployed_stack_is_known_by_a_file_that_no_longer_loads(
    tmp_path: Path, old: str, new: str, code: str
) -> None:
    shipped = (CONFIG / "Pulumi.dev-aws.yaml").read_text()
    assert old in shipped
    (tmp_path / "Pulumi.dev.yaml").write_text(shipped.replace(old, new))
    spec, found = stackspec.load_deployed("dev", tmp_path)
    assert spec is None and code in {problem.code for problem in found}
    with pytest.raises(UserError) as caught:
        stackspec.load_typed("dev", tmp_path)
    assert caught.value.problems == found


def test_a_spec_that_breaks_a_rule_can_be_read(tmp_path: Path) -> None:
    shipped = (CONFIG / "Pulumi.dev-aws.yaml").read_text()
    broken = re.sub(r"expires_on: .*", "expires_on: 2001-02-31", shipped)
    (tmp_path / "Pulumi.dev.yaml").write_text(broken)
    spec, found = stackspec.load_deployed("dev", tmp_path)
    assert spec and spec.expires_on == "2001-02-31" and [problem.path for problem in found] == ["expires_on"]
    assert stackspec.load_typed("dev", tmp_path).broken == found
    with pytest.raises(UserError) as caught:
        stackspec.load_file("dev", tmp_path)
    assert caught.value.problems == found
