"""Asks a Kubernetes cluster for the objects of `policies/sources/live/kubernetes`. It only reads."""

from dataclasses import dataclass, field
from typing import Any

from infra.clouds.kubectl import ClusterApi, connected, unanswered
from policies.sources.live.kubernetes.sorts import SORTS, Sort
from policies.sources.live.question import Answers, Item, Refusal
from policies.sources.live.snapshot import Snapshot, moment
from trainstack.collect.listing import WHOLE, RefusedError, listed
from trainstack.collect.manifests import kept

DISCOVERY = ("/api", "/apis")
"""Paths that tell which kinds a cluster serves."""
# One document, of Kubernetes 1.27 and later (Kubernetes API Concepts, "Aggregated discovery").
_SERVED = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)
# Kubernetes API Concepts, "Metadata-only fetches".
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def collect(context: str | None = None) -> Snapshot:
    """Everything that rules look at in the cluster of a context of the shell's kubeconfig.

    What is refused is written down as such. Raises UserError where the cluster cannot be asked at all.
    """
    taken = moment()
    with connected(context) as cluster:
        served = _discovered(cluster)
        answers = {sort.question: _heard(cluster, sort, served) for sort in SORTS}
    spaces = [item.answer["metadata"] for item in answers["core.namespaces"].items]
    # Kubernetes has no other identity of a cluster (kubernetes/enhancements, keps/sig-multicluster/2149).
    identity = next((one["uid"] for one in spaces if one["name"] == "kube-system"), "unknown")
    return Snapshot("kubernetes", identity, cluster.server, taken, answers)


@dataclass(frozen=True)
class _Version:
    """A version in which a cluster serves a kind."""

    name: str
    plural: str


@dataclass
class _Served:
    """What can be listed in a cluster."""

    kinds: dict[tuple[str, str], list[_Version]] = field(default_factory=dict)
    """By group and kind: its versions, the one that the server prefers first."""
    silent: set[str] = field(default_factory=set)
    """Groups of which a server behind the API server does not answer."""


def _discovered(cluster: ClusterApi) -> _Served:
    found = _Served()
    for path in DISCOVERY:
        said = cluster.get(path, _SERVED)
        if said.status != 200 or "items" not in said.body:
            raise unanswered(cluster, said)
        for group in said.body["items"]:
            name = str(group["metadata"].get("name") or "")
            for version in group.get("versions") or ():
                if version.get("freshness") == "Stale":
                    found.silent.add(name)
                for row in version.get("resources") or ():
                    kind = str((row.get("responseKind") or {}).get("kind"))
                    if "list" in (row.get("verbs") or ()):
                        one = _Version(version["version"], row["resource"])
                        found.kinds.setdefault((name, kind), []).append(one)
    return found


def _heard(cluster: ClusterApi, sort: Sort, served: _Served) -> Answers:
    there = served.kinds.get((sort.group, sort.kind), [])
    known = next((one for one in there if one.name in sort.versions), None)
    if known is None and sort.group in served.silent:
        said = "the server of the group does not answer"
        return Answers((), (Refusal("Stale", said, sort.right),))
    if known is None and there:
        versions = ", ".join(one.name for one in there)
        said = f"the cluster serves {versions}, and rules read {', '.join(sort.versions)}"
        return Answers((), (Refusal("OtherVersion", said, sort.right),))
    if known is None:
        return Answers()
    try:
        return Answers(tuple(Item(one) for one in _objects(cluster, sort, known)))
    except RefusedError as error:
        answer = error.answer
        return Answers((), (Refusal(answer.code, answer.message, sort.right),))


def _objects(cluster: ClusterApi, sort: Sort, served: _Version) -> list[Any]:
    version = f"{sort.group}/{served.name}" if sort.group else served.name
    path = f"/{'apis' if sort.group else 'api'}/{version}/{served.plural}"
    accept = WHOLE if sort.whole else _METADATA
    # Items of a list do not say what they are.
    return [kept({**one, "apiVersion": version, "kind": sort.kind}) for one in listed(cluster, path, accept)]
