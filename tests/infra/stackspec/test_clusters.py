"""Several clusters from one spec: what belongs together is checked, each cluster has a spec of its own."""

import copy
from pathlib import Path
from typing import Any

import pytest

from infra import stackspec
from infra.errors import UserError
from infra.stackspec.document import read
from infra.stackspec.layouts import ClusterLayout, LargeLayout
from infra.stackspec.load import CONFIG, members_left
from infra.stackspec.several.derived import workers
from tests.infra.stackspec.stack_files import Values, problems

RANGES = {"usw2": "10.32.0.0/16", "use1": "10.48.0.0/16"}


@pytest.fixture
def large(values: Values) -> Values:
    """Two clusters in two regions, with pools of the same names."""
    made = copy.deepcopy(values)
    pool = made["spec"]["layout"]["pools"][0]
    west = {**pool, "zones": ["us-west-2b"]}
    made["profile"] = "large"
    made["spec"]["layout"] = {
        "zones": ["us-east-1a", "us-east-1b"],
        "clusters": [
            _cluster("usw2", "us-west-2", [west]),
            _cluster("use1", "us-east-1", [pool]),
        ],
    }
    return made


def _cluster(name: str, region: str, pools: list[Values]) -> Values:
    return {
        "name": name,
        "region": region,
        "zones": [f"{region}a", f"{region}b"],
        "network_cidr": RANGES[name],
        "pools": pools,
    }


def refused(values: Values) -> set[tuple[str, str]]:
    return {(problem.path, problem.code) for problem in problems(values)}


def layout(values: Values) -> Any:
    return values["spec"]["layout"]


def test_a_large_stack_is_accepted(large: Values) -> None:
    loaded = stackspec.load("dev", large, "Pulumi.dev.yaml")
    assert isinstance(loaded.spec.layout, LargeLayout) and loaded.member is None


def test_a_cluster_has_the_spec_of_one_cluster_with_full_names_of_its_pools() -> None:
    loaded = stackspec.load_file("large-aws-usw2")
    spec = loaded.spec
    assert isinstance(spec.layout, ClusterLayout)
    assert (spec.name, spec.region) == ("large-aws-usw2", "us-west-2")
    assert [pool.name for pool in spec.layout.pools] == ["usw2-h100", "usw2-l4"]
    assert spec.teams[0].gpus == {"usw2-h100": 16}
    assert loaded.member and (loaded.member.of.name, loaded.member.cluster) == ("large-aws", "usw2")


def test_budgets_of_teams_are_the_managers(large: Values) -> None:
    assert [team.monthly_usd for team in stackspec.load_file("large-aws").spec.teams] == [None, None, 20000]
    assert {team.monthly_usd for team in stackspec.load_file("large-aws-use1").spec.teams} == {None}


def test_a_value_of_a_cluster_keeps_its_line_and_reason() -> None:
    loaded = stackspec.load_file("large-aws-usw2")
    (found,) = loaded.explain("layout.pools[0].min_nodes")
    assert found.origin.source == "Pulumi.large-aws.yaml" and found.origin.line and found.origin.reason
    (found,) = loaded.explain("layout.idle_minutes")
    assert found.origin.source == "profiles/large.yaml"


@pytest.mark.parametrize("count", [0, 21])
def test_no_cluster_and_twenty_one_are_refused(large: Values, count: int) -> None:
    first = layout(large)["clusters"][0]
    layout(large)["clusters"] = [
        {**first, "name": f"c{at}", "network_cidr": f"10.{at + 1}.0.0/16"} for at in range(count)
    ]
    assert ("layout.clusters", "too-long" if count else "too-short") in refused(large)


@pytest.mark.parametrize("count", [1, 20])
def test_one_cluster_is_accepted_as_after_the_loss_of_another_and_twenty(large: Values, count: int) -> None:
    first = layout(large)["clusters"][0]
    layout(large)["clusters"] = [
        {**first, "name": f"c{at}", "network_cidr": f"10.{at + 1}.0.0/16"} for at in range(count)
    ]
    stackspec.load("dev", large, "Pulumi.dev.yaml")


@pytest.mark.parametrize(
    ("at", "cidr"), [(0, "10.0.0.0/16"), (1, "10.32.0.0/16"), (1, "10.32.128.0/20")], ids=str
)
def test_networks_that_overlap_are_refused(large: Values, at: int, cidr: str) -> None:
    layout(large)["clusters"][at]["network_cidr"] = cidr
    assert {code for _, code in refused(large)} == {"networks-overlap"}


def test_the_range_that_is_proposed_is_unused(large: Values) -> None:
    layout(large)["clusters"][1]["network_cidr"] = "10.32.0.0/16"
    (problem,) = problems(large)
    assert "10.1.0.0/16" in problem.fix


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("key", ["zones", "region", "network_cidr", "pools", "name"])
def test_a_missing_value_of_a_cluster_is_named(large: Values, key: str) -> None:
    del layout(large)["clusters"][0][key]
    assert {path for path, _ in refused(large)} == {f"layout.clusters[0].{key}"}


def test_a_cluster_of_a_file_that_breaks_a_rule_is_still_that_cluster(folder: Path) -> None:
    file = folder / "Pulumi.large-aws.yaml"
    file.write_text(file.read_text().replace("network_cidr: 10.48.0.0/16", "network_cidr: 10.32.0.0/16"))
    loaded = stackspec.load_typed("large-aws-usw2", folder)
    assert loaded.broken and (loaded.spec.name, loaded.spec.region) == ("large-aws-usw2", "us-west-2")


def test_stacks_of_clusters_that_a_file_names_no_more_are_known(folder: Path) -> None:
    spec = stackspec.load_file("large-aws", folder).spec
    assert members_left(spec, folder) == []
    for name, of in (("large-aws-use2", "large-aws"), ("large-gcp-use2", "large-aws")):
        text = f"config: {{'trainstack:of': {of}, 'trainstack:cluster': use2}}\n"
        (folder / f"Pulumi.{name}.yaml").write_text(text)
    assert members_left(spec, folder) == ["large-aws-use2"]
    assert members_left(stackspec.load_file("large-aws-usw2", folder).spec, folder) == []


def test_two_clusters_of_one_name_are_refused(large: Values) -> None:
    layout(large)["clusters"][1]["name"] = "usw2"
    assert ("layout.clusters[1].name", "cluster-named-twice") in refused(large)


def test_two_pools_of_one_name_in_one_cluster_are_refused(large: Values) -> None:
    pools = layout(large)["clusters"][1]["pools"]
    pools.append(dict(pools[0]))
    assert (f"layout.clusters[1].pools[{len(pools) - 1}].name", "pool-named-twice") in refused(large)


def test_names_that_are_too_long_for_what_is_named_after_them_are_refused(large: Values) -> None:
    layout(large)["clusters"][0]["name"] = "n" * 29
    assert refused(large) == {
        ("layout.clusters[0].name", "cluster-name-too-long"),
        ("layout.clusters[0].pools[0].name", "pool-name-too-long"),
    }


def test_full_names_of_pools_that_collide_are_refused(large: Values) -> None:
    first, second = layout(large)["clusters"]
    first["name"], first["pools"][0]["name"] = "a1", "b-c1"
    second["name"], second["pools"][0]["name"] = "a1-b", "c1"
    large["spec"]["teams"][0]["gpus"] = {"c1": 8}
    assert refused(large) == {("layout.clusters[1].pools[0].name", "pool-named-as-another")}


def test_a_team_without_quota_on_any_cluster_is_refused(large: Values) -> None:
    large["spec"]["teams"].append({"name": "Vision", "gpus": {"a100": 0}})
    assert refused(large) == {("teams[1].gpus", "team-without-quota")}


def test_pools_that_no_cluster_has_are_refused(large: Values) -> None:
    large["spec"]["teams"][0]["gpus"] = {"a100": 8, "h100": 1}
    large["spec"]["smoke"]["pools"] = ["h200"]
    large["spec"]["on"]["pools"] = {"l4": {}}
    assert refused(large) == {
        ("teams[0].gpus.h100", "unknown-pool"),
        ("smoke.pools[0]", "unknown-pool"),
        ("on.pools.l4", "unknown-pool"),
    }


def test_problems_of_a_cluster_are_at_the_paths_of_the_one_spec(large: Values) -> None:
    first, second = layout(large)["clusters"]
    first["pools"][0]["machine"], second["zones"] = "g5.xlarge", ["us-west-2a", "us-east-1b"]
    large["spec"]["teams"][0]["gpus"] = {"a100": 800}
    found = refused(large)
    assert ("layout.clusters[0].pools[0].rdma", "machine-without-efa") in found
    assert ("layout.clusters[1].zones[0]", "zone-not-in-region") in found
    assert not [path for path, _ in found if path.startswith("layout.pools")]


def test_what_is_wrong_in_all_clusters_is_reported_once(large: Values) -> None:
    layout(large)["kubernetes_version"] = "1.20"
    paths = [problem.path for problem in problems(large)]
    assert paths.count("layout.kubernetes_version") == len({p.code for p in problems(large)})


def test_an_unknown_region_of_a_cluster_is_refused(large: Values) -> None:
    layout(large)["clusters"][0]["region"] = "us-west-9"
    assert ("layout.clusters[0].region", "unknown-region") in refused(large)


def test_ranges_of_a_cluster_are_its_own_and_none_by_default(large: Values) -> None:
    layout(large)["api_access"] = ["198.51.100.0/24"]
    layout(large)["clusters"][0]["api_access"] = ["203.0.113.7/32"]
    spec = stackspec.load("dev", large, "Pulumi.dev.yaml").spec
    assert isinstance(spec.layout, LargeLayout)
    opened = [one.layout for one in workers(spec, spec.layout).values()]
    assert [isinstance(one, ClusterLayout) and one.api_access for one in opened] == [("203.0.113.7/32",), ()]
    layout(large)["clusters"][0]["api_access"] = ["0.0.0.0/0"]
    ((path, _),) = refused(large)
    assert path == "layout.clusters[0].api_access[0]"


def test_another_scheduler_is_refused(large: Values) -> None:
    layout(large)["scheduler"] = "slurm"
    assert refused(large) == {("layout.scheduler", "scheduler-not-supported")}


def test_parts_of_one_cluster_are_not_said_for_all(large: Values) -> None:
    large["spec"]["data"]["shared_fs"] = {
        "capacity_gib": 4800,
        "throughput_mb_s_per_tib": 125,
        "zone": "us-east-1b",
    }
    assert refused(large) == {("data.shared_fs", "shared-fs-of-all-clusters")}


def test_a_shared_file_system_of_a_cluster_is_in_its_zones(large: Values) -> None:
    shared = {"capacity_gib": 4800, "throughput_mb_s_per_tib": 125, "zone": "us-east-1b"}
    layout(large)["clusters"][0]["shared_fs"] = shared
    assert refused(large) == {("layout.clusters[0].shared_fs.zone", "zone-not-of-stack")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the stack files of the checkout."""
    for file in CONFIG.glob("Pulumi.*.yaml"):
        (tmp_path / file.name).write_text(file.read_text())
    return tmp_path


@pytest.mark.parametrize(
    ("text", "path", "code"),
    [
        ("trainstack:of: large-aws", "trainstack:cluster", "required-setting-missing"),
        ("trainstack:cluster: usw2", "trainstack:of", "required-setting-missing"),
        (
            "trainstack:of: large-aws\n  trainstack:cluster: usw2\n  trainstack:region: us-west-2",
            "trainstack:region",
            "setting-of-large-stack",
        ),
        ("trainstack:of: dev-aws\n  trainstack:cluster: usw2", "trainstack:of", "not-a-large-stack"),
        ("trainstack:of: large-aws-use1\n  trainstack:cluster: usw2", "trainstack:of", "not-a-large-stack"),
        ("trainstack:of: large-aws\n  trainstack:cluster: usw3", "trainstack:cluster", "unknown-cluster"),
        ("trainstack:of: large-aws\n  trainstack:cluster: use1", "stack", "stack-not-of-cluster"),
        ("trainstack:of: [large-aws]\n  trainstack:cluster: usw2", "trainstack:of", "setting-not-text"),
        ("trainstack:of: large-awz\n  trainstack:cluster: usw2", "--stack", "stack-file-missing"),
    ],
)
def test_a_file_of_a_cluster_that_does_not_fit_is_refused(
    folder: Path, text: str, path: str, code: str
) -> None:
    (folder / "Pulumi.large-aws-usw2.yaml").write_text(f"config:\n  {text}\n")
    with pytest.raises(UserError) as caught:
        stackspec.load_file("large-aws-usw2", folder)
    assert caught.value.codes == ((code, path),)


def test_a_cluster_of_a_broken_large_stack_is_refused_with_its_problems(folder: Path) -> None:
    file = folder / "Pulumi.large-aws.yaml"
    file.write_text(file.read_text().replace("10.48.0.0/16", "10.32.0.0/16"))
    with pytest.raises(UserError) as caught:
        stackspec.load_file("large-aws-usw2", folder)
    assert caught.value.codes == (("networks-overlap", "layout.clusters[1].network_cidr"),)


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [{"name": "usw2"}, {"name": "use1"}]], ids=str)
def test_clusters_of_other_types_are_refused_without_a_traceback(large: Values, value: Any) -> None:
    layout(large)["clusters"] = value
    assert refused(large)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"endpoint": "ip"},
            ("on.endpoint", "endpoint-of-clusters"),
        ),
        ({"rapid_checkpoints": "us-central1-a"}, ("on.rapid_checkpoints", "zone-of-all-clusters")),
        ({"first_rdma_zone": "us-central1-a"}, ("on.first_rdma_zone", "zone-of-all-clusters")),
    ],
    ids=["addresses of API servers", "a bucket in a zone", "names of networks of a zone"],
)
def test_settings_of_google_cloud_for_one_cluster_are_refused_for_all(
    change: Values, expected: tuple[str, str]
) -> None:
    content = read(CONFIG / "Pulumi.large-gcp.yaml", "f")["config"]
    given = {name.removeprefix("trainstack:"): copy.deepcopy(value) for name, value in content.items()}
    stackspec.load("dev", copy.deepcopy(given), "Pulumi.dev.yaml")
    given["spec"]["on"].update(change)
    assert expected in refused(given)


def test_a_cluster_without_a_pool_that_trains_has_no_gate_and_the_others_keep_theirs(large: Values) -> None:
    layout(large)["clusters"][0]["pools"][0]["purpose"] = "interactive"
    spec = stackspec.load("dev", large, "Pulumi.dev.yaml").spec
    assert isinstance(spec.layout, LargeLayout)
    made = workers(spec, spec.layout)
    assert {name: one.smoke.enabled for name, one in made.items()} == {"usw2": False, "use1": True}
    layout(large)["clusters"][1]["pools"][0]["purpose"] = "interactive"
    assert refused(large) == {("smoke.pools", "gate-validates-nothing")}
    spec_of = large["spec"]
    spec_of["smoke"] = {**spec_of.get("smoke", {}), "pools": []}
    assert refused(large) == {("smoke.pools", "gate-validates-nothing")}
