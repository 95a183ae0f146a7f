"""Another set of workers for a manager in use, in the order in which an update of its stack changes it."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from components.kubernetes.charts import charts
from components.kubernetes.clusters import dispatching
from components.kubernetes.clusters.manager import ClusterArgs, flavors, teams
from components.kubernetes.queueing.leaving import NAME, PROGRAM
from rehearsal.controlplane.api import Object
from tests.cluster.multi.fleet import TEAMS, Fleet, given, pool
from tests.cluster.programs import finished, started
from tests.cluster.queues.generated import Queues, generated
from tests.cluster.queues.lab import IMAGE, NO_GATE, applied


def of_manager(names: Sequence[str], origin: str, suffix: str) -> list[Object]:
    """The queues of a manager with these workers."""
    args: list[ClusterArgs] = [{"name": name, "flavors": [pool(name)]} for name in names]
    sent: Queues = {
        "flavors": flavors(args),
        "teams": teams(args, TEAMS),
        "gate": NO_GATE,
        "ending": False,
        "sends": {"stack": origin, "clusters": names},
    }
    return generated(sent, suffix, image=IMAGE)


def changed(clusters: Fleet, origin: str, before: Sequence[str], after: Sequence[str]) -> None:
    """What an update does that adds or removes workers: it creates and changes, and then deletes."""
    api = clusters.manager.api
    old, new = (of_manager(names, origin, clusters.suffix) for names in (before, after))
    leave(clusters, after)
    # The dispatcher comes after the queues; without the pod of before, as it never has two.
    applied(api, new)
    clusters.stop()
    given(
        api,
        lambda: {"p": dispatching.Dispatching("d", {"image": IMAGE, "workers": [], "names": after}).program},
    )
    clusters.start()
    kept = {_key(body) for body in new}
    for body in reversed(old):
        if _key(body) not in kept:
            version, kind, name, namespace = _key(body)
            api.delete(version, kind, name, namespace, propagation="Background")


def leave(clusters: Fleet, names: Sequence[str], patience_s: float = 120) -> None:
    """Run the program that moves jobs away from all clusters but these."""
    api, space = clusters.manager.api, charts()["kueue"].namespace
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": space}})
    folder = clusters.folder / uuid.uuid4().hex[:6]
    folder.mkdir()
    words = {"names": ",".join(names), "seconds": patience_s, "message": folder / "message"}
    process = started(PROGRAM, words, api.access, api.token(space, NAME), folder)
    code, message = finished(process, folder, patience_s + 30)
    assert code == 0, message


def _key(body: Mapping[str, Any]) -> tuple[str, str, str, str]:
    metadata = body["metadata"]
    return body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace", "")
