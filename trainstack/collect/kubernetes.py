"""List the objects of `policies/sources/live/kubernetes` in a Kubernetes cluster. Read-only."""

from dataclasses import dataclass, field
from typing import Any

from infra.clouds.kubectl import ClusterApi, connected, unanswered
from policies.sources.live.kubernetes.object_kinds import OBJECT_KINDS, ListedKind
from policies.sources.live.queries import AnswerItem, Answers, ApiRefusal
from policies.sources.live.snapshot import Snapshot, moment
from trainstack.collect.manifests import kept
from trainstack.collect.object_lists import WHOLE, ListRefusedError, listed

DISCOVERY = ("/api", "/apis")
"""Discovery paths of an API server."""
# One document, of Kubernetes 1.27 and later (Kubernetes API Concepts, "Aggregated discovery").
_SERVED = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)
# Kubernetes API Concepts, "Metadata-only fetches".
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def collect(context: str | None = None) -> Snapshot:
    """Snapshot of the cluster of a context of the kubeconfig.

    Errors of lists are part of the snapshot. Raises UserError if the cluster cannot be read at all.
    """
    taken = moment()
    with connected(context) as cluster:
        served = _discovered(cluster)
        answers = {kind.query: _answers(cluster, kind, served) for kind in OBJECT_KINDS}
    spaces = [item.answer["metadata"] for item in answers["core.namespaces"].items]
    # Kubernetes has no other identity of a cluster (kubernetes/enhancements, keps/sig-multicluster/2149).
    identity = next((one["uid"] for one in spaces if one["name"] == "kube-system"), "unknown")
    return Snapshot("kubernetes", identity, cluster.server, taken, answers)


@dataclass(frozen=True)
class _Version:
    name: str
    plural: str


@dataclass
class _Served:
    kinds: dict[tuple[str, str], list[_Version]] = field(default_factory=dict)
    """By group and kind: its versions, the preferred one first."""
    stale: set[str] = field(default_factory=set)
    """Groups whose aggregated API server does not respond."""


def _discovered(cluster: ClusterApi) -> _Served:
    found = _Served()
    for path in DISCOVERY:
        response = cluster.get(path, _SERVED)
        if response.status != 200 or "items" not in response.body:
            raise unanswered(cluster, response)
        for group in response.body["items"]:
            name = str(group["metadata"].get("name") or "")
            for version in group.get("versions") or ():
                if version.get("freshness") == "Stale":
                    found.stale.add(name)
                for row in version.get("resources") or ():
                    kind = str((row.get("responseKind") or {}).get("kind"))
                    if "list" in (row.get("verbs") or ()):
                        one = _Version(version["version"], row["resource"])
                        found.kinds.setdefault((name, kind), []).append(one)
    return found


def _answers(cluster: ClusterApi, kind: ListedKind, served: _Served) -> Answers:
    there = served.kinds.get((kind.group, kind.kind), [])
    known = next((one for one in there if one.name in kind.versions), None)
    if known is None and kind.group in served.stale:
        message = "the server of the group does not respond"
        return Answers((), (ApiRefusal("Stale", message, kind.right),))
    if known is None and there:
        versions = ", ".join(one.name for one in there)
        message = f"the cluster serves {versions}, and rules read {', '.join(kind.versions)}"
        return Answers((), (ApiRefusal("OtherVersion", message, kind.right),))
    if known is None:
        return Answers()
    try:
        return Answers(tuple(AnswerItem(one) for one in _objects(cluster, kind, known)))
    except ListRefusedError as error:
        answer = error.answer
        return Answers((), (ApiRefusal(answer.code, answer.message, kind.right),))


def _objects(cluster: ClusterApi, kind: ListedKind, served: _Version) -> list[Any]:
    version = f"{kind.group}/{served.name}" if kind.group else served.name
    path = f"/{'apis' if kind.group else 'api'}/{version}/{served.plural}"
    accept = WHOLE if kind.whole else _METADATA
    # Items of a list have no kind.
    return [kept({**one, "apiVersion": version, "kind": kind.kind}) for one in listed(cluster, path, accept)]
