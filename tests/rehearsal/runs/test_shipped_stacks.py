"""Shipped environments, deployed by the real engine in the emulated clouds, from preview to destroy.

Projects of Google Cloud are of an organization with the security baseline. `dev-gcp` has the choices that no
shipped file makes: mounted datasets, and a time after which idle nodes are removed.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.engine.stack import EngineStack
from rehearsal.client import Rehearsal
from tests.policies.pack.engine_rows import Verdict, of_engine, verdicts_of_pack
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import (
    NOTHING,
    UNCHANGED,
    UP,
    Done,
    Seen,
    audited,
    do,
    events_under_pack,
    native,
    seen,
)

# The data access log of Cloud Storage is a setting of the project, which outlives the stack; so does the
# vault of the homes' backups, where there was one.
LEFT = {"dev-gcp": 1, "prod-gcp": 2, "small-eks-aws": 0, "small-gke-gcp": 1}
POOLS = {"dev-gcp": "a100", "prod-gcp": "h100", "small-eks-aws": "l4", "small-gke-gcp": "l4"}
# What changes in place when a stack grows, and which nodes are replaced.
GROWS: Mapping[str, tuple[set[str], set[str]]] = {
    "small-eks-aws": ({"aws:eks/cluster:Cluster", "aws:s3/bucket:Bucket"}, {"aws:eks/nodeGroup:NodeGroup"}),
    "small-gke-gcp": ({"gcp:container/cluster:Cluster", "gcp:storage/bucket:Bucket"}, set()),
}
pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Life:
    """One life of a stack."""

    stack: str
    preview: str
    made: Seen
    claims: set[str]
    """Names of the claims on volumes in the state."""
    status: str
    result: Mapping[str, Any]
    unchanged: Seen
    audited: Done
    packed: set[Verdict] | None
    """Verdicts of the policy pack on the deployed stack; only for the larger stack."""
    kept: Seen | None
    """A destroy with protected resources; None without any."""
    grown: Sequence[Mapping[str, Any]] | None
    """Steps of a preview with the next larger profile; only for small stacks."""
    destroyed: Seen


# Their parts are in small-gke-gcp and dev-aws (test_medium_stack.py), or differ in values.
MORE = ("dev-gcp", "prod-gcp", "small-eks-aws")


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=pytest.mark.more if one in MORE else ()) for one in sorted(POOLS)],
)
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    for home in life.home(tmp_path_factory.mktemp(request.param)):
        yield _live(home, request.param)


def _live(home: Path, stack: str) -> Life:
    preview = do(home, "preview", stack=stack).stdout
    chosen = {"dev-gcp": _with_choices}.get(stack)
    config = life.beside_others(home, stack, chosen)
    if stack.endswith("-gcp"):
        life.in_a_new_organization(home)
    made = seen(home, native(home, *UP, "--config-file", config, stack=stack))
    # Without a passed gate there is nothing further to check.
    assert made.done.returncode == 0, made.output
    claims = _claims(home, stack)
    status = do(home, "status", stack=stack).stdout
    result = json.loads(max(made.results).read_text())
    unchanged = seen(home, native(home, *UNCHANGED, "--config-file", config, stack=stack))
    policed = audited(home, stack)
    packed = kept = grown = None
    if stack.startswith("small-"):
        larger = life.beside_others(home, stack, _as_medium)
        larger_preview = native(home, "preview", "--json", "--config-file", larger, stack=stack)
        assert larger_preview.returncode == 0, larger_preview.stdout + larger_preview.stderr
        grown = json.loads(larger_preview.stdout)["steps"]
    if stack == "prod-gcp":
        packed = verdicts_of_pack(
            of_engine(events_under_pack(home, stack, "--config-file", config).splitlines())
        )
        kept = seen(home, do(home, "destroy", "--yes", stack=stack))
        released = life.beside_others(home, stack, _released)
        done = native(home, *UP, "--config-file", released, stack=stack)
        assert done.returncode == 0, done.stdout + done.stderr
    ended = do(home, "destroy", "--yes", stack=stack)
    Rehearsal(home).wait_until_idle()
    return Life(
        stack=stack,
        preview=preview,
        made=made,
        claims=claims,
        status=status,
        result=result,
        unchanged=unchanged,
        audited=policed,
        packed=packed,
        kept=kept,
        grown=grown,
        destroyed=seen(home, ended),
    )


def _claims(home: Path, stack: str) -> set[str]:
    state = EngineStack(stack, Rehearsal(home).environment()).resources()
    claims = (one for one in state if one["type"] == "kubernetes:core/v1:PersistentVolumeClaim")
    return {str(one["inputs"]["metadata"]["name"]) for one in claims}


def _with_choices(config: Any) -> None:
    """Claims of datasets in buckets, and idle nodes that are removed after five minutes."""
    config["trainstack:spec"]["on"]["dataset_claims"] = True
    config["trainstack:spec"]["layout"]["idle_minutes"] = 5


def _released(config: Any) -> None:
    """Remove the protection of a stack and its data."""
    config["trainstack:spec"]["data"].update({"protect": False, "on_destroy": "discard"})


def _as_medium(config: Any) -> None:
    """Another profile, and settings that it leaves to the owner."""
    config["trainstack:profile"] = "medium"
    config["trainstack:spec"]["data"]["shared_fs"] = None


def test_training_opens_the_gate_on_the_nodes_of_the_pool(lived: Life) -> None:
    assert lived.result["verdict"] in ("PASS", "INCONCLUSIVE")
    assert len(lived.result["cluster"]["ranks"]) == 2
    assert len({str(rank["host"]) for rank in lived.result["cluster"]["ranks"]}) == 2
    assert f"of pool {POOLS[lived.stack]}" in lived.status


def test_the_result_is_read_from_the_bucket(lived: Life) -> None:
    uri = rf"(s3|gs)://{lived.stack}-storage-checkpoints-\w+/smoke/smoke-\w+/result\.json"
    assert re.search(rf"^results +{uri}$", lived.status, re.MULTILINE), lived.status
    verdict = lived.result["verdict"]
    assert re.search(rf"^nodes +\S+, \S+: {verdict} ", lived.status, re.MULTILINE), lived.status


def test_a_preview_shows_the_price(lived: Life) -> None:
    for expected in (f"GPU pool {POOLS[lived.stack]} (", "total of known"):
        assert expected in lived.preview, lived.preview


def test_an_unchanged_up_changes_nothing_and_trains_nothing(lived: Life) -> None:
    assert lived.unchanged.done.returncode == 0, lived.unchanged.output
    assert lived.unchanged.results == lived.made.results != {}


def test_the_state_passes_every_rule_without_a_waiver(lived: Life) -> None:
    assert lived.audited.stderr == ""
    outcomes = json.loads(lived.audited.stdout)["outcomes"]
    assert [one for one in outcomes if one["result"] not in ("pass", "not-applicable")] == []
    assert lived.audited.returncode == 0


def test_the_policy_pack_has_the_same_verdicts_on_a_deployed_stack(lived: Life) -> None:
    if lived.packed is None:
        assert lived.stack != "prod-gcp"
        return
    # The engine does not pass the creation time of resources to a pack (docs/adr/0025).
    assert {(rule, result) for rule, _, result, _ in lived.packed} == {("MLS-REP-04", "undetermined")}


def test_a_protected_stack_loses_nothing_to_a_destroy(lived: Life) -> None:
    if lived.kept is None:
        assert lived.stack != "prod-gcp"
        return
    assert lived.kept.done.returncode == 2, lived.kept.output
    assert lived.kept.resources == lived.made.resources
    for name in ("storage-lustre.protect", "cluster-cluster.deletionProtection", "data.protect to false"):
        assert name in lived.kept.done.stderr, name


def test_a_stack_grows_without_losing_data_or_cluster(lived: Life) -> None:
    if lived.grown is None:
        assert not lived.stack.startswith("small-")
        return
    done = {(step["op"], step["urn"].split("::")[2].split("$")[-1]) for step in lived.grown}
    kept, lost_nodes = GROWS[lived.stack]
    assert {("update", kind) for kind in kept} <= done
    lost = {kind for op, kind in done if op not in ("same", "update", "create")}
    # Larger system nodes are another group on AWS, and the validation runs once more.
    assert {kind for kind in lost if not kind.startswith("kubernetes:")} == lost_nodes
    inside = {kind.rpartition(":")[2] for kind in lost if kind.startswith("kubernetes:")}
    assert inside == {"ConfigMap", "Job", "Service"}


def test_pods_of_teams_mount_datasets_where_the_stack_has_claims(lived: Life) -> None:
    assert ({"datasets", "shared-datasets"} <= lived.claims) == (lived.stack in ("dev-gcp", "prod-gcp"))


def test_destroy_leaves_no_resource_and_no_process(lived: Life) -> None:
    assert lived.destroyed.done.returncode == 0, lived.destroyed.output
    assert lived.destroyed.resources == {**NOTHING, "gcp": LEFT[lived.stack]}
    assert lived.destroyed.processes == []
