"""Changes of a deployed stack, as edits of its spec."""

from collections.abc import Callable
from typing import Any

Edit = Callable[[Any], object]


def quickly(spec: Any) -> None:
    """The shipped stack without its validation, which these changes do not concern, and with one server."""
    spec["smoke"].update({"enabled": False, "schedule": None})
    spec["tracking"].update({"replicas": 1, "workers": 1})


def pool(name: str, **values: Any) -> Edit:
    """Other values for the pool of this name."""

    def edit(spec: Any) -> None:
        (found,) = (one for one in spec["layout"]["pools"] if one["name"] == name)
        found.update(values)

    return edit


def _team_added(spec: Any) -> None:
    spec["teams"].append({"name": "Robotics", "gpus": {"a100": 0, "l4": 0}})


ON_AWS: dict[str, Edit] = {
    "pool grown": pool("a100", max_nodes=6),
    "pool shrunk": pool("a100", max_nodes=3),
    "owner": lambda spec: spec.update(owner="new-owner@example.com"),
    "environment": lambda spec: spec.update(environment="test", data_class="public", expires_on="2027-03-31"),
    "budget": lambda spec: spec["budget"].update(monthly_usd=70000),
    "team added": _team_added,
    "alert edit": lambda spec: spec["budget"]["alert_emails"].append("on-call@example.com"),
    "add-on version": lambda spec: spec["on"].update(addon_versions={"coredns": "v1.14.2-eksbuild.5"}),
    "zone left": pool("l4", zones=["us-east-1b", "us-east-1a"]),
    "node image": lambda spec: spec["on"].update(node_image="1.36.3-20260911"),
}
_EVERY_GROUP = {
    "dev-cluster-system",
    "dev-a100-nodes-us-east-1b",
    *(f"dev-{pool}-nodes-us-east-1{zone}" for pool in ("cpu", "l4") for zone in "abc"),
}
ENDING_ON_AWS = {"node image": _EVERY_GROUP, "zone left": {"dev-l4-nodes-us-east-1c"}}
"""Changes that end nodes, with their groups; no other change may."""
