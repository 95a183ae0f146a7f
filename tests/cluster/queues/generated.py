"""The objects of the component `Queueing`, as a stack makes them."""

from collections.abc import Sequence
from typing import Any, TypedDict

from components.kubernetes.charts import charts
from components.kubernetes.definitions.install import NAME as DEFINES
from components.kubernetes.network_policies import PlatformNetwork
from components.kubernetes.queueing.admission import FITS
from components.kubernetes.queueing.controller import NAME as WAITS
from components.kubernetes.queueing.queues import Queueing, QueueingArgs, SendsArgs
from components.kubernetes.queueing.quotas import FlavorArgs, GateArgs, TeamArgs
from rehearsal.controlplane.api import Object
from tests.cluster.manifests import manifests
from tests.components.graph import deploy_graph


class Queues(TypedDict):
    """Arguments that differ between tests."""

    flavors: Sequence[FlavorArgs]
    teams: Sequence[TeamArgs]
    gate: GateArgs
    ending: bool
    sends: SendsArgs | None


def generated(given: Queues, suffix: str, *, image: str, fits: bool = False) -> list[Object]:
    """The objects beside those of controllers; names of teams get a suffix."""
    renamed: Any = [{**team, "name": f"{team['name']} {suffix}"} for team in given["teams"]]
    args: QueueingArgs = {
        "flavors": given["flavors"],
        "teams": renamed,
        "gate": given["gate"],
        "ending": given["ending"],
        "sends": given["sends"],
        "ready_image": image,
        "control_plane": PlatformNetwork("eks", ["10.0.0.0/16"]),
    }
    graph = deploy_graph(lambda: {"cohort": Queueing("q", args).cohort})
    return [
        body for body in manifests(graph)
        if not _of_controllers(body["metadata"]) and (fits or body["metadata"]["name"] != FITS)
    ]  # fmt: skip


def _of_controllers(metadata: Object) -> bool:
    """Whether an object is of Kueue, which is there already, or of the Jobs before and after it."""
    own = charts()["kueue"].namespace
    return own in (metadata["name"], metadata.get("namespace")) or metadata["name"] in (
        WAITS,
        f"{DEFINES}-kueue",
    )
