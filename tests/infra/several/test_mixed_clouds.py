"""Clusters on two clouds behind one manager: one spec, with what differs by cloud said in the cluster."""

import copy
from pathlib import Path
from typing import Any

import pytest

from infra import stackspec
from infra.stackspec.document import read
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, LargeLayout
from infra.stackspec.load import CONFIG
from infra.stackspec.several.derived import digest, manager, workers
from infra.stackspec.stack import StackSpec
from tests.infra.stackspec.stack_files import Values, problems

STACK, ON_AWS, ON_GOOGLE = "large-mixed", "large-mixed-use1", "large-mixed-usc1"
GOOGLE = "layout.clusters[1]"
ARN, GROUP = "arn:aws:iam::123456789012:role/pretraining", "group:pretraining@example.com"


def values(stack: str = STACK) -> Values:
    content = read(CONFIG / f"Pulumi.{stack}.yaml", "f")["config"]
    return {name.removeprefix("trainstack:"): copy.deepcopy(value) for name, value in content.items()}


@pytest.fixture
def mixed() -> Values:
    return values()


def clusters(given: Values) -> list[Any]:
    found: list[Any] = given["spec"]["layout"]["clusters"]
    return found


def refused(given: Values) -> set[tuple[str, str]]:
    return {(problem.path, problem.code) for problem in problems(given)}


def loaded(given: Values) -> tuple[StackSpec, LargeLayout]:
    spec = stackspec.load("dev", given, "Pulumi.dev.yaml").spec
    assert isinstance(spec.layout, LargeLayout)
    return spec, spec.layout


def test_a_cluster_has_the_settings_and_the_defaults_of_its_own_cloud() -> None:
    spec = stackspec.load_file(ON_GOOGLE).spec
    assert isinstance(spec.on, GcpSpec) and isinstance(spec.layout, ClusterLayout)
    assert (spec.on.project, spec.on.channel) == ("example-ml-dev", "regular")
    assert (spec.layout.system_pool.machine, spec.layout.idle_minutes) == ("e2-standard-4", None)
    other = stackspec.load_file(ON_AWS).spec
    assert isinstance(other.layout, ClusterLayout)
    assert (other.cloud, other.layout.system_pool.machine, other.layout.idle_minutes) == (
        "aws",
        "m6i.xlarge",
        30,
    )


def test_a_value_of_a_cloud_has_the_layer_of_its_profile_there() -> None:
    one = stackspec.load_file(ON_GOOGLE)
    assert one.explain("on.channel")[0].origin.source == "profiles/large.gcp.yaml"
    assert one.explain("budget.monthly_usd")[0].origin.source == "Pulumi.large-mixed.yaml"


def test_the_manager_knows_the_spec_that_a_cluster_is_deployed_from(mixed: Values) -> None:
    spec = stackspec.load_file(STACK).spec
    assert isinstance(spec.layout, LargeLayout)
    made = workers(spec, spec.layout)
    for stack, cluster in ((ON_AWS, "use1"), (ON_GOOGLE, "usc1")):
        assert digest(made[cluster]) == digest(stackspec.load_file(stack).spec)


def test_budgets_of_both_clouds_are_the_one_amount(mixed: Values) -> None:
    spec, layout = loaded(mixed)
    parts = [manager(spec, layout).budget, workers(spec, layout)["usc1"].budget]
    assert [one.monthly_usd for one in parts] == [250000, 150000]
    assert sum(one.monthly_usd for one in parts) == spec.budget.monthly_usd


def test_members_are_written_once_and_have_on_each_cloud_their_names_there(mixed: Values) -> None:
    mixed["spec"]["teams"][0]["members"] = [ARN, GROUP]
    spec, layout = loaded(mixed)
    made = {name: one.teams[0].members for name, one in workers(spec, layout).items()}
    assert made == {"use1": (ARN,), "usc1": (GROUP,)}
    assert manager(spec, layout).teams[0].members == (ARN,)


def test_the_images_of_a_cluster_are_those_of_its_cloud(mixed: Values) -> None:
    del clusters(mixed)[1]["smoke_image"]
    mixed["spec"]["smoke"]["image"] = f"quay.io/acme/torch@sha256:{'0' * 64}"  # public
    spec, layout = loaded(mixed)
    made = workers(spec, layout)["usc1"]
    assert made.tracking and made.tracking.image == clusters(mixed)[1]["tracking_image"]
    assert made.smoke.image == spec.smoke.image


def test_settings_of_pools_have_the_short_names(mixed: Values) -> None:
    clusters(mixed)[1]["on"]["pools"] = {"h100-spot": {"driver": "latest"}}
    spec, layout = loaded(mixed)
    on = workers(spec, layout)["usc1"].on
    assert isinstance(on, GcpSpec) and on.pools["usc1-h100-spot"].driver == "latest"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"on": None}, {(f"{GOOGLE}.on", "settings-of-cloud-missing")}),
        ({"monthly_usd": None}, {(f"{GOOGLE}.monthly_usd", "budget-of-cluster-missing")}),
        ({"monthly_usd": 400000}, {(f"{GOOGLE}.monthly_usd", "budget-parts-too-large")}),
        ({"monthly_usd": 0}, {(f"{GOOGLE}.monthly_usd", "greater-than")}),
        ({"tracking_image": None}, {(f"{GOOGLE}.tracking_image", "image-of-other-cloud")}),
        # The common one has the plugin of EFA, and the cluster a pool with RDMA.
        ({"smoke_image": None}, {(f"{GOOGLE}.smoke_image", "image-of-other-cloud")}),
        ({"cloud": "existing"}, {(f"{GOOGLE}.cloud", "literal-error")}),
        ({"system_machine": "m6i.xlarge"}, {(f"{GOOGLE}.system_machine", "unknown-cpu-type")}),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_a_cluster_on_another_cloud_that_lacks_something_is_refused(
    mixed: Values, change: Values, expected: set[tuple[str, str]]
) -> None:
    clusters(mixed)[1].update(change)
    assert expected <= refused(mixed)


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        ({"project": None}, "project", "string-type"),
        ({"account_id": "123456789012"}, "account_id", "key-of-other-choice"),
        ({"admins": []}, "admins", "too-short"),
        ({"endpoint": "ip"}, "endpoint", "endpoint-of-clusters"),
        ({"pools": {"a100": {}}}, "pools.a100", "unknown-pool"),
        ({"admins": ["ml-platform"]}, "admins[0]", "string-pattern-mismatch"),
    ],
    ids=str,
)
def test_settings_of_the_cloud_of_a_cluster_are_checked_at_their_path(
    mixed: Values, change: Values, path: str, code: str
) -> None:
    clusters(mixed)[1]["on"].update(change)
    assert refused(mixed) == {(f"{GOOGLE}.on.{path}", code)}


def test_settings_of_a_cloud_that_are_not_said_are_named(mixed: Values) -> None:
    del clusters(mixed)[1]["on"]
    assert {(f"{GOOGLE}.on.project", "required-key-missing")} <= refused(mixed)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("on", {"account_id": "123456789012", "nat": "single", "endpoints": []}),
        ("monthly_usd", 5),
        ("smoke_image", "example.com/a@sha256:" + "0" * 64),
        ("system_machine", "m6i.xlarge"),
        ("idle_minutes", 20),
    ],
)
def test_a_cluster_on_the_cloud_of_the_manager_has_its_settings(
    mixed: Values, name: str, value: object
) -> None:
    clusters(mixed)[0][name] = value
    assert (f"layout.clusters[0].{name}", "setting-of-other-cloud") in refused(mixed)


def test_a_pool_of_another_cloud_has_no_settings_of_the_manager(mixed: Values) -> None:
    mixed["spec"]["on"]["pools"] = {"h100-spot": {}}
    assert refused(mixed) == {("on.pools.h100-spot", "unknown-pool")}


def test_a_member_is_refused_at_its_place_in_the_one_list(mixed: Values) -> None:
    team = mixed["spec"]["teams"][0]
    team["members"] = [ARN, "user:ada@example.com", "ada"]
    assert refused(mixed) == {("teams[0].members[2]", "invalid-member")}
    team["members"] = ["user:ada@example.com", "arn:aws:iam::12:role/a"]
    assert {path for path, _ in refused(mixed)} == {"teams[0].members[1]"}


def test_a_team_whose_members_cannot_submit_jobs_is_refused(mixed: Values) -> None:
    mixed["spec"]["teams"][0]["members"] = ["user:ada@example.com"]
    assert refused(mixed) == {("teams[0].members", "team-without-member-of-manager")}


def test_a_manager_on_google_cloud_has_no_login_to_aws() -> None:
    given = values("large-gcp")
    clusters(given)[1]["cloud"] = "aws"
    assert (f"{GOOGLE}.cloud", "cluster-on-other-cloud") in refused(given)
    # What such a cluster lacks besides is not reported: no value would help.
    assert not {"image-of-other-cloud", "budget-of-cluster-missing"} & {code for _, code in refused(given)}


@pytest.mark.parametrize("value", [7, "x", [], {"name": 3}], ids=str)
def test_settings_of_other_types_are_refused_without_a_traceback(mixed: Values, value: object) -> None:
    clusters(mixed)[1]["on"] = value
    assert {path for path, _ in refused(mixed) if path.startswith(f"{GOOGLE}.on")}


def test_a_client_layer_can_change_a_cluster(tmp_path: Path) -> None:
    for file in CONFIG.glob("Pulumi.large-mixed*.yaml"):
        (tmp_path / file.name).write_text(file.read_text())
    whole = tmp_path / f"Pulumi.{STACK}.yaml"
    whole.write_text(
        whole.read_text().replace("region: us-east-1 # of", "client: acme\n  trainstack:region: us-east-1 #")
    )
    (tmp_path / "clients").mkdir()
    (tmp_path / "clients" / "acme.yaml").write_text(
        "layout: {clusters: [{name: usc1, on: {channel: rapid}}, {name: use1}]}"
    )
    on = stackspec.load_file(ON_GOOGLE, tmp_path).spec.on
    assert isinstance(on, GcpSpec) and on.channel == "rapid"
