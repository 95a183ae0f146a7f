"""Profile, cloud overlay, client and stack file: who says what, and what happens when they disagree."""

from pathlib import Path
from typing import Any

import pytest

from infra import stackspec
from infra.stackspec import document, layers, merge
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.problems import steps_of
from infra.stackspec.supported import SUPPORTED
from tests.infra.stackspec.stack_files import Values, problems


def test_an_unknown_profile_names_those_that_exist(values: Values) -> None:
    values["profile"] = "gigantic"
    (problem,) = problems(values)
    assert "medium on aws" in problem.fix


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the client layer `acme`, to be written."""
    monkeypatch.setattr(layers, "CLIENTS", tmp_path)
    return tmp_path / "acme.yaml"


def test_a_client_stands_between_profile_and_stack_file(values: Values, client: Path) -> None:
    client.write_text("on: {nat: per_zone} # two offices\nsmoke: {nodes: 1, timeout_s: 1200}\n")
    values["client"], values["spec"]["smoke"]["nodes"] = "acme", 3
    loaded = stackspec.load("dev", values, "Pulumi.dev.yaml")
    reported = {found.path: found for found in loaded.explain("")}
    assert isinstance(loaded.spec.on, AwsSpec) and loaded.spec.on.nat == "per_zone"
    assert reported["on.nat"].origin.source == f"{client.parent.name}/acme.yaml"
    assert (reported["smoke.nodes"].value, reported["smoke.nodes"].origin.source) == (3, "Pulumi.dev.yaml")
    assert reported["smoke.timeout_s"].value == 1200


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
    assert isinstance(loaded.spec.layout, ClusterLayout)
    assert loaded.spec.layout.pools[0].purchase.kind == "on_demand"


def test_layers_that_contradict_each_other_are_both_named(values: Values, client: Path) -> None:
    client.write_text("layout:\n  pools: many\nsmoke:\n  enabled: false\nbudget:\n  anomaly_usd: {a: 1}\n")
    values["client"] = "acme"
    values["spec"]["budget"]["anomaly_usd"] = 100
    found = {problem.path: str(problem) for problem in problems(values)}
    here = f"{client.parent.name}/acme.yaml"
    for path, line in (("layout.pools", 2), ("budget.anomaly_usd", 6)):
        assert "Pulumi.dev.yaml" in found[path] and f"{here}:{line}" in found[path]
    assert f"from profiles/medium.yaml:{_line('schedule')}" in found["smoke.schedule"]
    assert f"{here}:4" in found["smoke.schedule"]


def _line(key: str) -> int:
    lines = (layers.PROFILES_FOLDER / "medium.yaml").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(f"{key}:"))


@pytest.mark.parametrize(("profile", "cloud"), [("large-slurm", "existing"), ("large", "existing")])
def test_a_pair_that_does_not_exist_names_those_that_do(values: Values, profile: str, cloud: str) -> None:
    values["profile"], values["cloud"] = profile, cloud
    (problem,) = problems(values)
    assert problem.path == "trainstack:profile" and "medium on gcp" in problem.fix


@pytest.mark.parametrize("profile", sorted({profile for profile, _ in SUPPORTED}))
def test_of_two_clouds_each_has_its_own_overlay_over_one_profile(profile: str) -> None:
    """What the profile says for every cloud, no overlay repeats with the same value."""
    common = _leaves(layers.PROFILES_FOLDER / f"{profile}.yaml")
    for cloud in sorted(cloud for found, cloud in SUPPORTED if found == profile):
        own = _leaves(layers.PROFILES_FOLDER / f"{profile}.{cloud}.yaml")
        repeated = {path for path, leaf in own.items() if path in common and leaf == common[path]}
        assert repeated == set()
        assert {path for path in own if not path.startswith("on.")} <= {
            *common,
            "layout.system_pool.machine",
            "layout.notebooks.machines",
            # On AWS the tracking server of a stack without a cluster is the service's own.
            *(("tracking.replicas", "tracking.workers") if (profile, cloud) == ("small", "gcp") else ()),
        }


def _leaves(path: Path) -> dict[str, Any]:
    """The values of a layer by their paths."""
    tree = document.node(document.read(path, path.name), path.name)
    content = merge.values(tree)
    found = {}
    for place in merge.origins(tree):
        value = content
        for step in steps_of(place):
            value = value[step]
        found[place] = value
    return found


def test_every_supported_pair_has_its_layers_and_no_other_has() -> None:
    files = {file.stem for file in layers.PROFILES_FOLDER.glob("*.yaml")}
    wanted = {profile for profile, _ in SUPPORTED} | {f"{profile}.{cloud}" for profile, cloud in SUPPORTED}
    assert files == wanted


def test_the_shipped_client_layer_fits(values: Values) -> None:
    del values["spec"]["owner"], values["spec"]["cost_center"]
    values["client"] = "example"
    loaded = stackspec.load("dev", values, "f")
    assert (loaded.spec.owner, loaded.spec.data.log_retention_days) == ("ml-platform@client.example", 365)
    (owner,) = loaded.explain("owner")
    assert owner.origin.source == "clients/example.yaml" and owner.origin.reason
