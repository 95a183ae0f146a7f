"""Invalid teams of pools by name: path of the change, value, path and code of the problem."""

from typing import Any

BROKEN_POOL_TEAMS: dict[str, tuple[Any, ...]] = {
    "teams of a pool in the common queue": (
        ("layout", "pools", 0, "teams"),
        ["Research"],
        "layout.pools[0].teams",
        "pool-teams-without-own-queue",
    ),
    "a pool of an unknown team": (
        ("layout", "pools", 0, "teams"),
        ["Reserch"],
        "layout.pools[0].teams[0]",
        "unknown-team",
    ),
    "a pool without a team": (("layout", "pools", 0, "teams"), [], "layout.pools[0].teams", "too-short"),
    "a pool of a team twice": (
        ("layout", "pools", 0, "teams"),
        ["Research", "Research"],
        "layout.pools[0].teams[1]",
        "team-named-twice",
    ),
    "a quota on a pool of others": (
        ("layout", "pools", 0, "teams"),
        ["Products"],
        "teams[0].gpus.a100",
        "guarantee-in-pool-of-others",
    ),
}
