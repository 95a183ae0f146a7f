"""Changes of a deployed stack on Google Cloud, as edits of its spec.

Additions are first in their lists, to find names that depend on the position in a list.
"""

from typing import Any

from tests.rehearsal.day2.changes import Edit, pool

_ROBOTICS = {"name": "Robotics", "gpus": {"a100": 0, "l4": 0}, "members": ["group:robotics@example.com"]}
_H100 = {
    "name": "h100",
    "machine": "a3-highgpu-8g",
    "purpose": "training",
    "purchase": {"kind": "spot"},
    "zones": ["us-central1-a"],
    "rdma": True,
    "min_nodes": 0,
    "max_nodes": 2,
    "disk_gib": 500,
}
_CPU = {
    "name": "tests",
    "machine": "n2-standard-8",
    "purpose": "data",
    "purchase": {"kind": "spot"},
    "zones": ["us-central1-a"],
    "rdma": False,
    "min_nodes": 0,
    "max_nodes": 2,
    "disk_gib": 100,
}


def _on_pool(name: str, **values: Any) -> Edit:
    return lambda spec: spec["on"]["pools"].setdefault(name, {}).update(values)


def _shared(name: str, sharing: dict[str, Any]) -> Edit:
    """A pool whose GPUs become shared: behind its own queue, with quotas in shares."""

    def edit(spec: Any) -> None:
        _on_pool(name, sharing=sharing)(spec)
        next(pool for pool in spec["layout"]["pools"] if pool["name"] == name)["own_queue"] = True
        for team in spec["teams"]:
            gpus = team.get("gpus", {}).pop(name, None)
            if gpus is not None:
                team["shares"] = {name: gpus * sharing["clients"]}

    return edit


def _on(part: str, **values: Any) -> Edit:
    return lambda spec: spec["on"].setdefault(part, {}).update(values)


def _members(team: int, *added: str) -> Edit:
    def edit(spec: Any) -> None:
        found = spec["teams"][team]
        found["members"] = [*added, *found.get("members", [])]

    return edit


def _team_leaves(spec: Any) -> None:
    del spec["teams"][0]


def _pool_added(added: dict[str, Any]) -> Edit:
    return lambda spec: spec["layout"]["pools"].insert(0, added)


def _first_pool_removed(spec: Any) -> None:
    gone = spec["layout"]["pools"].pop(0)["name"]
    spec["on"]["pools"].pop(gone, None)
    for team in spec["teams"]:
        team["gpus"].pop(gone, None)


def _zones(*names: str) -> Edit:
    """Other zones of the stack, and of its pools that are in more than one."""

    def edit(spec: Any) -> None:
        spec["layout"]["zones"] = [*names]
        for one in spec["layout"]["pools"]:
            if len(one["zones"]) > 1:
                one["zones"] = [*names]

    return edit


def _reserved(spec: Any) -> None:
    pool("a100", purchase={"kind": "reserved", "id": "projects/example-ml-dev/reservations/a100"})(spec)
    del spec["on"]["pools"]["a100"]["compact"]  # a reservation stays in its zone


def _another_order(spec: Any) -> None:
    lists = [spec["layout"]["pools"], spec["layout"]["zones"], spec["teams"], spec["on"]["admins"]]
    lists += [spec["budget"]["alert_emails"], *(one["zones"] for one in spec["layout"]["pools"])]
    for one in lists:
        one.reverse()


def _all(*edits: Edit) -> Edit:
    """One edit after the other."""

    def edit(spec: Any) -> None:
        for one in edits:
            one(spec)

    return edit


ON_GCP: dict[str, Edit] = {
    "pool grown": pool("a100", max_nodes=7),
    "pool added": _pool_added(_CPU),
    "pool with networks added": _pool_added(_H100),
    "pool removed": _first_pool_removed,
    "machine": pool("l4", machine="g2-standard-12"),
    "machine with other GPUs": pool("a100", machine="a2-ultragpu-8g"),
    "disk": pool("l4", disk_gib=200),
    "purchase": pool("l4", purchase={"kind": "on_demand"}),
    "zones of a pool": pool("l4", zones=["us-central1-b", "us-central1-c"]),
    "zone added": lambda spec: spec["layout"]["zones"].insert(0, "us-central1-f"),
    "zone left": _zones("us-central1-a", "us-central1-c"),
    "reservation": _reserved,
    "driver": _on_pool("l4", driver="latest"),
    "sharing": _shared("l4", {"kind": "time_sharing", "clients": 4}),
    "pods of a node": lambda spec: spec["on"].update(pods_per_node=48),
    "owner": lambda spec: spec.update(owner="new-owner@example.com"),
    "environment": lambda spec: spec.update(environment="test", data_class="public", expires_on="2027-03-31"),
    "another order": _another_order,
    "team added": lambda spec: spec["teams"].insert(0, _ROBOTICS),
    "team leaves": _team_leaves,
    "people join": _all(
        _members(1, "user:ada@example.com"),
        lambda spec: spec["on"]["admins"].insert(0, "user:grace@example.com"),
    ),
    "alert edit": lambda spec: spec["budget"]["alert_emails"].insert(0, "on-call@example.com"),
    "protection": lambda spec: spec["data"].update(protect=True, on_destroy="keep"),
    # Each preview takes seconds: these touch different resources, or different fields of one.
    "settings": _all(
        lambda spec: spec["budget"].update(monthly_usd=25000),
        lambda spec: spec["layout"].update(idle_minutes=20),
        lambda spec: spec["data"].setdefault("checkpoints", {}).update(expire_days=60),
        lambda spec: spec["on"].update(channel="rapid", dataset_claims=True),
        _on("database", tier="db-custom-4-15360", availability="regional"),
        _on("maintenance", days=["SU"], start="01:00", hours=12),
    ),
}
ENDING_ON_GCP: dict[str, set[str]] = {
    "pool removed": {"dev-a100-nodes"},
    "machine": {"dev-l4-nodes"},
    "machine with other GPUs": {"dev-a100-nodes"},
    "disk": {"dev-l4-nodes"},
    "purchase": {"dev-l4-nodes"},
    "zones of a pool": {"dev-l4-nodes"},
    "zone left": {"dev-cluster-system", "dev-cpu-nodes", "dev-l4-nodes"},
    "reservation": {"dev-a100-nodes"},
    "driver": {"dev-l4-nodes"},
    "sharing": {"dev-l4-nodes"},
    "pods of a node": {"dev-a100-nodes", "dev-l4-nodes", "dev-cpu-nodes"},
}
"""Changes that end nodes, with their pools; no other change may."""
