"""A stack file becomes a spec, or every reason why not."""

import copy
from pathlib import Path
from typing import Any

import pytest

from infra import stackspec
from infra.errors import Problem, UserError
from infra.stackspec import layers
from infra.stackspec.clouds import AwsSpec
from infra.stackspec.layouts import MediumLayout
from infra.stackspec.supported import SUPPORTED

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
            "layout": {
                "zones": ["us-east-1a", "us-east-1b"],
                "pools": [
                    {
                        "name": "a100",
                        "machine": "p4d.24xlarge",
                        "purpose": "training",
                        "purchase": {"kind": "on_demand"},
                        "zones": ["us-east-1b"],
                        "rdma": True,
                        "max_nodes": 4,
                    }
                ],
            },
            "on": {"admin_arns": ["arn:aws:iam::123456789012:role/platform"]},
            "data": {"shared_fs": None},
            "teams": [{"name": "Research", "gpus": {"a100": 8}, "monthly_budget_usd": 1000}],
            "budget": {"monthly_usd": 5000, "alert_emails": ["a@example.com"]},
            "tracking": {"image": "registry.example.com/mlflow" + digest},
            "smoke": {"pool": "a100", "image": "registry.example.com/torch" + digest},
        },
    }


def problems(values: Values) -> list[Problem]:
    with pytest.raises(UserError) as caught:
        stackspec.load("dev", values, "Pulumi.dev.yaml")
    return list(caught.value.problems)


def paths(values: Values) -> set[str]:
    return {problem.path for problem in problems(values)}


def test_the_profile_supplies_what_the_file_leaves_out(values: Values) -> None:
    loaded = stackspec.load("dev", values, "Pulumi.dev.yaml")
    assert loaded.spec.name == "dev"
    assert isinstance(loaded.spec.on, AwsSpec) and loaded.spec.on.nat == "single"
    assert loaded.spec.smoke.accept == ("PASS",)


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


BROKEN: dict[str, tuple[Any, ...]] = {
    "efa on a type without it": (("layout", "pools", 0, "machine"), "g5.xlarge", "layout.pools[0].rdma"),
    "efa over several zones": (
        ("layout", "pools", 0, "zones"),
        ["us-east-1a", "us-east-1b"],
        "layout.pools[0].zones",
    ),
    "a zone of another region": (("layout", "zones"), ["us-east-1a", "eu-west-1b"], "layout.zones[1]"),
    "a zone twice": (("layout", "zones"), ["us-east-1b", "us-east-1b"], "layout.zones"),
    "a pool zone without a subnet": (
        ("layout", "pools", 0, "zones"),
        ["us-east-1f"],
        "layout.pools[0].zones[0]",
    ),
    "an unknown type": (("layout", "pools", 0, "machine"), "p9.48xlarge", "layout.pools[0].machine"),
    "a public range": (("layout", "network_cidr"), "8.8.0.0/16", "layout.network_cidr"),
    "a small range": (("layout", "network_cidr"), "10.0.0.0/24", "layout.network_cidr"),
    "host bits in the range": (("layout", "network_cidr"), "10.0.0.1/16", "layout.network_cidr"),
    "an open API server": (
        ("layout", "api_access"),
        ["0.0.0.0/0"],
        "layout.api_access[0]",
    ),
    "an old Kubernetes": (("layout", "kubernetes_version"), "1.19", "layout.kubernetes_version"),
    "a block without reservation": (
        ("layout", "pools", 0, "purchase"),
        {"kind": "block"},
        "layout.pools[0].purchase.id",
    ),
    "spot with a reservation": (
        ("layout", "pools", 0, "purchase"),
        {"kind": "spot", "id": "cr-0123456789abcdef0"},
        "layout.pools[0].purchase.id",
    ),
    "more at least than at most": (("layout", "pools", 0, "min_nodes"), 5, "layout.pools[0].min_nodes"),
    "a budget of nothing": (("budget", "monthly_usd"), 0, "budget.monthly_usd"),
    "a negative budget": (("teams", 0, "monthly_budget_usd"), -1, "teams[0].monthly_budget_usd"),
    "teams that outspend the stack": (("teams", 0, "monthly_budget_usd"), 9999, "budget.monthly_usd"),
    "a quota on no pool": (("teams", 0, "gpus"), {"h100": 1}, "teams[0].gpus.h100"),
    "quotas beyond the pool": (("teams", 0, "gpus"), {"a100": 17}, "layout.pools[0].max_nodes"),
    "a smoke test on no pool": (("smoke", "pool"), "h100", "smoke.pool"),
    "a smoke test beyond the pool": (("smoke", "nodes"), 5, "smoke.nodes"),
    "a gate that never opens": (("smoke", "accept"), ["INCONCLUSIVE"], "smoke.accept"),
    "a schedule that cannot be read": (("smoke", "schedule"), "every monday", "smoke.schedule"),
    "a schedule without end": (("smoke", "schedule"), "*/5 * * * *", "smoke.schedule"),
    "a schedule that repeats no gate": (("smoke", "enabled"), False, "smoke.schedule"),
    "an image without digest": (("smoke", "image"), "registry.example.com/torch:latest", "smoke.image"),
    "an address that is none": (("owner",), "nobody", "owner"),
    "no administrator": (("on", "admin_arns"), [], "on.admin_arns"),
    "a session as administrator": (
        ("on", "admin_arns"),
        ["arn:aws:sts::123456789012:assumed-role/admin/session"],
        "on.admin_arns[0]",
    ),
    "a reservation of no known form": (
        ("layout", "pools", 0, "purchase"),
        {"kind": "reserved", "id": "the-blue-one"},
        "layout.pools[0].purchase.id",
    ),
    "a key of another cloud": (("on", "project"), "research-1", "on.project"),
    "a key of another layout": (("layout", "max_hours"), 4, "layout.max_hours"),
    "a purchase without a kind": (("layout", "pools", 0, "purchase"), {}, "layout.pools[0].purchase.kind"),
    "a purchase in one word": (("layout", "pools", 0, "purchase"), "spot", "layout.pools[0].purchase"),
    "a database smaller than itself": (("on", "database"), {"min_acu": 8}, "on.database.min_acu"),
    "no teams": (("teams",), [], "teams"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_deployed_is_refused_by_name(values: Values, case: str) -> None:
    stackspec.load("dev", copy.deepcopy(values), "f")  # it is this change, and nothing else, that breaks it
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
    assert "medium on aws" in problem.fix


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
    assert {pool.name for pool in loaded.spec.layout.pools} == {"a100", "l4"}


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


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the client layer `acme`, to be written."""
    monkeypatch.setattr(layers, "CLIENTS", tmp_path)
    return tmp_path / "acme.yaml"


def test_a_client_stands_between_profile_and_stack_file(values: Values, client: Path) -> None:
    client.write_text("on: {nat: per_zone} # two offices\nsmoke: {nodes: 1, timeout_s: 1200}\n")
    values["client"], values["spec"]["smoke"]["nodes"] = "acme", 3
    loaded = stackspec.load("dev", values, "Pulumi.dev.yaml")
    told = {found.path: found for found in loaded.explain("")}
    assert isinstance(loaded.spec.on, AwsSpec) and loaded.spec.on.nat == "per_zone"
    assert told["on.nat"].origin.source == f"{client.parent.name}/acme.yaml"
    assert (told["smoke.nodes"].value, told["smoke.nodes"].origin.source) == (3, "Pulumi.dev.yaml")
    assert told["smoke.timeout_s"].value == 1200


def test_an_unknown_client_is_refused_with_those_that_exist(values: Values, client: Path) -> None:
    client.write_text("tags: {client: acme}\n")
    values["client"] = "acne"
    (problem,) = problems(values)
    assert problem.path == "trainstack:client" and "acme" in problem.fix


def test_how_nodes_are_bought_is_replaced_as_a_whole(values: Values, client: Path) -> None:
    client.write_text(
        "layout: {pools: [{name: a100, purchase: {kind: reserved, id: cr-0123456789abcdef0}}]}\n"
    )
    values["client"] = "acme"
    loaded = stackspec.load("dev", values, "f")
    assert isinstance(loaded.spec.layout, MediumLayout)
    assert loaded.spec.layout.pools[0].purchase.kind == "on_demand"


def test_layers_that_contradict_each_other_are_both_named(values: Values, client: Path) -> None:
    client.write_text("layout:\n  pools: many\nsmoke:\n  enabled: false\nbudget:\n  anomaly_usd: {a: 1}\n")
    values["client"] = "acme"
    values["spec"]["budget"]["anomaly_usd"] = 100
    found = {problem.path: str(problem) for problem in problems(values)}
    here = f"{client.parent.name}/acme.yaml"
    assert f"Pulumi.dev.yaml has a list here, {here}:2 has a single value" in found["layout.pools"]
    assert f"Pulumi.dev.yaml has a single value here, {here}:6 has a mapping" in found["budget.anomaly_usd"]
    assert f"from profiles/medium.yaml:{_line('schedule')}" in found["smoke.schedule"]
    assert f"smoke.enabled is from {here}:4" in found["smoke.schedule"]


def _line(key: str) -> int:
    lines = (layers.PROFILES_FOLDER / "medium.yaml").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(f"{key}:"))


@pytest.mark.parametrize(("profile", "cloud"), [("small", "aws"), ("medium", "gcp"), ("large", "existing")])
def test_a_pair_that_does_not_exist_names_those_that_do(values: Values, profile: str, cloud: str) -> None:
    values["profile"], values["cloud"] = profile, cloud
    (problem,) = problems(values)
    assert problem.path == "trainstack:profile" and "medium on aws" in problem.fix


def test_every_supported_pair_has_its_layers_and_no_other_has() -> None:
    files = {file.stem for file in layers.PROFILES_FOLDER.glob("*.yaml")}
    wanted = {profile for profile, _ in SUPPORTED} | {f"{profile}.{cloud}" for profile, cloud in SUPPORTED}
    assert files == wanted


def test_a_stack_file_of_the_former_form_is_refused_with_the_new_form(values: Values) -> None:
    old = values["spec"]
    del old["layout"], old["on"], old["data"]
    old["network"] = {"zones": ["us-east-1a", "us-east-1b"], "nat": "single"}
    old["cluster"] = {"admin_principal_arns": ["arn:aws:iam::123456789012:role/platform"]}
    old["pools"] = [
        {
            "name": "a100",
            "instance_type": "p4d.24xlarge",
            "purpose": "training",
            "capacity": "capacity_block",
            "reservation_id": "cr-0123456789abcdef0",
            "zones": ["us-east-1b"],
            "efa": True,
            "max_size": 4,
        }
    ]
    old["storage"] = {"lustre": {"capacity_gib": 1300, "throughput_mb_s_per_tib": 125, "zone": "us-east-1b"}}
    old["tracking"]["min_acu"] = 1
    found = {problem.path: str(problem) for problem in problems(values)}
    assert 'Write `layout.zones: ["us-east-1a", "us-east-1b"]`.' in found["network.zones"]
    assert 'Write `on.nat: "single"`.' in found["network.nat"]
    assert 'Write `layout.pools[0].purchase.kind: "block"`.' in found["pools[0].capacity"]
    assert "got 'capacity_block'" in found["pools[0].capacity"] and "Pulumi.dev.yaml" in found["network.nat"]
    assert 'Write `layout.pools[0].machine: "p4d.24xlarge"`.' in found["pools[0].instance_type"]
    assert "Write `layout.pools[0].rdma: true`." in found["pools[0].efa"]
    assert "Write `on.database.min_acu: 1`." in found["tracking.min_acu"]
    assert "Write `data.shared_fs.capacity_gib: 1300`." in found["storage.lustre.capacity_gib"]
    # What is wrong with the value itself is said in the same pass.
    assert "1200 GiB" in found["data.shared_fs"]
    assert not {"layout.pools", "on.admin_arns"} & set(found)


def test_the_shipped_client_layer_fits(values: Values) -> None:
    del values["spec"]["owner"], values["spec"]["cost_center"]
    values["client"] = "example"
    loaded = stackspec.load("dev", values, "f")
    assert (loaded.spec.owner, loaded.spec.data.log_retention_days) == ("ml-platform@client.example", 365)
    (owner,) = loaded.explain("owner")
    assert owner.origin.source == "clients/example.yaml" and owner.origin.reason
