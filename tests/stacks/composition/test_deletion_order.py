"""Order of deletion: users' jobs end while the controllers of their finalizers run."""

import pytest

from tests.components.graph import Graph
from tests.stacks.composition.composed import Pair, composed

CLUSTERS: list[Pair] = [
    (profile, cloud) for profile in ("medium", "small-cluster") for cloud in ("aws", "gcp")
]
RELEASES = {
    "Release:dev-queueing-kueue",
    "Release:dev-trainer-jobset",
    "Release:dev-trainer-kubeflow-trainer",
}


def _spaces(made: Graph) -> list[str]:
    """The namespaces of jobs: those that Kueue manages."""
    spaces = [
        name for name, asked in made.requests.items()
        if name.startswith("Namespace:dev-queueing-") and "kueue" not in name
    ]  # fmt: skip
    assert len(spaces) >= 2
    return spaces


@pytest.mark.parametrize("pair", CLUSTERS, ids="-".join)
def test_namespaces_of_jobs_are_deleted_before_what_their_jobs_need_to_end(pair: Pair) -> None:
    made = composed(pair)
    assert made.edges.keys() >= RELEASES
    kinds = ("ClusterQueue:", "ResourceFlavor:", "Cohort:", "ValidatingAdmissionPolicyBinding:dev-queueing")
    lasting = {name for name in made.edges if name.startswith(kinds)} | RELEASES
    for space in _spaces(made):
        team = space.removeprefix("Namespace:dev-queueing-").removesuffix("namespace")
        own = {name for name in made.edges if name.startswith(f"PersistentVolume:dev-{team}volumes-")}
        assert not (lasting | own) - made.created_after(space), space


@pytest.mark.parametrize("pair", CLUSTERS, ids="-".join)
def test_claims_queues_and_policies_of_a_namespace_end_with_it(pair: Pair) -> None:
    """A claim that a pod mounts would hold its own deletion, and with it that of the namespace."""
    made = composed(pair)
    kinds = ("LocalQueue:", "TeamClaims:", "NetworkPolicy:dev-queueing-team")
    spaces = {space.partition(":")[2] for space in _spaces(made)}
    inside = [name for name in made.requests if name.startswith(kinds)]
    assert {name.partition(":")[0] for name in inside} == {kind.partition(":")[0] for kind in kinds}
    for name in inside:  # the engine applies the option of a component to its children
        assert made.requests[name].deletedWith.rpartition("::")[2] in spaces, name
