"""Random stack files of the medium layout on Google Cloud: mostly sensible, a few values may be anything."""

from typing import Any

from hypothesis import strategies as st

from infra.catalog.gcp import facts, pools
from tests.stacks.stack_files import BUDGETS, DIGEST, TEAM_BUDGETS, Values, at
from tests.stacks.stack_files_both import WILD as BOTH
from tests.stacks.stack_files_windows import WILD as WINDOWS
from tests.stacks.stack_files_windows import windowed

REGIONS = ("us-central1", "us-east4", "europe-west4", "asia-southeast1")
RESERVATION = "projects/example-ml-dev/reservations/r1"
_OWNED: Values = {
    "owner": "a@example.com",
    "cost_center": "research",
    "environment": "dev",
    "data_class": "internal",
    "expires_on": "2027-03-31",
}

# Values at paths such as `teams.0.weight`, good ones and bad ones.
WILD: dict[str, st.SearchStrategy[Any]] = {
    **TEAM_BUDGETS,
    "tags": st.sampled_from([{}, {"project": "a"}, {"Cost Center": "Größe 1"}, {"owner": "another team"}]),
    "environment": st.sampled_from(["dev", "prod", "Production"]),
    "layout.kubernetes_version": st.sampled_from(["1.35", "1.36", "1.37", "1.19", "1.x"]),
    "layout.api_access": st.lists(
        st.sampled_from(["203.0.113.0/24", "198.51.100.7/32", "0.0.0.0/0", "::/0", "10.0.0.1/8"]), max_size=2
    ),
    "layout.network_cidr": st.builds(
        "{}/{}".format,
        st.sampled_from(["10.0.0.0", "172.16.0.0", "172.17.0.0", "100.64.0.0", "127.0.0.0", "10.0.0.1", "x"]),
        st.integers(14, 22),
    ),
    "layout.zones": st.lists(
        st.sampled_from(["us-central1-a", "us-central1-b", "us-east4-a", "us-central1-z"]), max_size=3
    ),
    "layout.idle_minutes": st.sampled_from([None, 5, 30]),
    "layout.system_pool.machine": st.sampled_from(
        ["e2-standard-4", "n2-standard-4", "n4-standard-4", "e2-micro", "g2-standard-8", "e2"]
    ),
    "layout.system_pool.min_nodes": st.integers(0, 8),
    "layout.system_pool.max_nodes": st.sampled_from([0, 1, 2, 6, 200, 1000, 1001]),
    "layout.pools.0.name": st.sampled_from(["p0", "p1", "gpu-pool", "a" * 33, "Pool"]),
    "layout.pools.0.machine": st.sampled_from(
        ["a3-megagpu-8g", "a3-ultragpu-8g", "a4x-highgpu-4g", "g2-standard-4", "n2-standard-2", "a9"]
    ),
    "layout.pools.0.purchase": st.sampled_from(
        [
            {"kind": "block", "id": RESERVATION},
            {"kind": "reserved", "id": f"{RESERVATION}/reservationBlocks/b1"},
            {"kind": "block", "id": f"{RESERVATION}/reservationBlocks/b1"},
            {"kind": "reserved", "id": "r1"},
            {"kind": "block"},
            {"kind": "flex_start"},
            {"kind": "queued"},
        ]
    ),
    **WINDOWS,
    "layout.pools.0.rdma": st.booleans(),
    "layout.pools.0.zones": st.sampled_from(
        [[], ["us-central1-a"], ["us-central1-b", "us-central1-b"], ["x"]]
    ),
    "layout.pools.0.min_nodes": st.integers(-1, 12),
    "layout.pools.0.max_nodes": st.sampled_from([0, 1, 18, 19, 64, 1000, 1001]),
    "layout.pools.0.disk_gib": st.sampled_from([1, 100, 16384, 65537]),
    "on.admins": st.lists(
        st.sampled_from(
            [
                "group:platform@example.com",
                "user:me@example.com",
                "serviceAccount:deployer@example-ml-dev.iam.gserviceaccount.com",
                "me@example.com",
                "allUsers",
            ]
        ),
        max_size=2,
    ),
    "on.project": st.sampled_from(["example-ml-dev", "Example", "x"]),
    "on.billing_account": st.sampled_from(["012345-6789AB-CDEF01", "012345"]),
    "on.channel": st.sampled_from(["rapid", "regular", "stable", "extended", "static"]),
    "on.endpoint": st.sampled_from(["dns", "ip"]),
    "on.maintenance": st.fixed_dictionaries(
        {
            "days": st.lists(st.sampled_from(["MO", "SA", "SU"]), max_size=3),
            "start": st.sampled_from(["00:00", "02:00", "23:59", "24:00"]),
            "hours": st.sampled_from([3, 4, 12, 24, 25]),
            "hold_nodes": st.booleans(),
        }
    ),
    "on.pods_per_node": st.sampled_from([7, 8, 32, 64, 110, 256, 257]),
    "on.accelerator_networks": st.sampled_from(["managed", "classic"]),
    "on.pools": st.dictionaries(
        st.sampled_from(["p0", "p0", "p1", "none"]),
        st.fixed_dictionaries(
            {},
            optional={
                "driver": st.sampled_from(["default", "latest", "newest"]),
                "compact": st.booleans(),
                "local_ssds": st.sampled_from([0, 1, 2, 16, 33]),
                "image_cache": st.sampled_from(["projects/p-images/global/images/torch", "torch"]),
                "sharing": st.sampled_from(
                    [
                        None,
                        {"kind": "time_sharing", "clients": 2},
                        {"kind": "time_sharing", "clients": 49},
                        {"kind": "mig", "partition": "1g.5gb"},
                        {"kind": "mig", "partition": "1g.10gb"},
                    ]
                ),
            },
        ),
        max_size=2,
    ),
    "on.dataset_cache": st.booleans(),
    "on.dataset_claims": st.booleans(),
    "on.homes_gib": st.sampled_from([99, 100, 1024, 10241]),
    "on.rapid_checkpoints": st.sampled_from([None, "us-central1-a", "us-east4-a", "nowhere"]),
    "on.checkpoint_addon": st.booleans(),
    "on.readiness_addon": st.booleans(),
    "on.database": st.fixed_dictionaries(
        {
            "tier": st.sampled_from(
                ["db-custom-1-3840", "db-custom-2-7680", "db-custom-3-7680", "db-f1-micro"]
            ),
            "availability": st.sampled_from(["zonal", "regional"]),
            "disk_gib": st.sampled_from([9, 10, 20, 65536, 65537]),
        }
    ),
    "data.log_retention_days": st.sampled_from([0, 1, 90, 3650, 3653]),
    **BOTH,
    "data.noncurrent_days": st.sampled_from([1, 6, 7, 90, 91]),
    "data.shared_fs": st.sampled_from(
        [
            None,
            {"capacity_gib": 9000, "throughput_mb_s_per_tib": 1000, "zone": "us-central1-a"},
            {"capacity_gib": 9000, "throughput_mb_s_per_tib": 500, "zone": "us-central1-a"},
            {"capacity_gib": 18000, "throughput_mb_s_per_tib": 300, "zone": "us-central1-a"},
            {"capacity_gib": 9000, "throughput_mb_s_per_tib": 1000, "zone": "us-central1-a", "rdma": True},
        ]
    ),
    "tracking.replicas": st.integers(0, 11),
    "teams.0.name": st.sampled_from(["ML Team", "team 1", "Équipe", "!!", "x" * 60]),
    "teams.0.folder": st.sampled_from(["research", "t1", "Old"]),
    "teams.0.members": st.lists(
        st.sampled_from(
            [
                "group:research@example.com",
                "group:research@other.example",
                "user:ada@example.com",
                "group:platform@example.com",
                "serviceAccount:bot@example-ml-dev.iam.gserviceaccount.com",
                "ada",
            ]
        ),
        max_size=2,
    ),
    "teams.0.weight": st.sampled_from([0, 0.0001, 0.001, 1000, 5000, float("inf"), float("nan")]),
    "teams.0.gpus": st.dictionaries(st.sampled_from(["p0", "p1", "none"]), st.integers(-1, 64), max_size=2),
    "budget.monthly_usd": st.sampled_from([0, 0.5, 1e4, 1e9, float("inf")]),
    "teams.0.alert_emails": st.lists(st.sampled_from(["a@example.com", "b@example.com", "none"]), max_size=3),
    "layout.monitoring": st.sampled_from(
        [
            {"kind": "none"},
            {"kind": "in_cluster", "retention_days": 7, "storage_gib": 20},
            {"kind": "in_cluster", "retention_days": 0, "storage_gib": 20},
            {"kind": "in_cluster", "storage_gib": 5},
        ]
    ),
    "budget.alert_emails": st.lists(st.sampled_from(["a@example.com", "b@example.com", "none"]), max_size=6),
    "budget.anomaly_usd": st.sampled_from([None, 0, 500]),
    "smoke.pools": st.lists(st.sampled_from(["p0", "p1", "p2", "none"]), max_size=3),
    "smoke.nodes": st.integers(0, 6),
    "smoke.schedule": st.sampled_from([None, "0 5 * * 1", "* * * * *", "monday"]),
}


def _zones_of(machine: str, region: str, zones: list[str]) -> list[str]:
    offering = facts.offering_zones(machine, region)
    return zones if offering is None else [zone for zone in zones if zone in offering]


@st.composite
def pool(draw: st.DrawFn, region: str, zones: list[str], name: str) -> tuple[Values, Values]:
    """A pool that the region offers, bought and sized in one of the ways that exist, and its part of `on`."""
    known = facts.machine_types.items()
    machines = sorted(name for name, row in known if not row.refused and _zones_of(name, region, zones))
    machine = facts.machine_type(draw(st.sampled_from(machines)))
    kind = draw(st.sampled_from([way for way in pools.KINDS if facts.sold(machine.name, way)]))
    rdma = machine.fabric is not None and kind != "flex_start" and draw(st.booleans())
    purpose = draw(st.sampled_from(["training", "fine_tuning", "interactive"]))
    offered = _zones_of(machine.name, region, zones)
    plain = not rdma and kind in ("on_demand", "spot")
    most = 1 if rdma or kind in ("reserved", "block") else len(offered)
    chosen = draw(st.lists(st.sampled_from(offered), min_size=1, max_size=most, unique=True))
    largest = draw(st.integers(1, 6))
    extra: Values = {}
    if plain and len(chosen) == 1 and draw(st.booleans()):
        extra["compact"] = True
    if purpose == "interactive" and not rdma and draw(st.booleans()):
        sizes = sorted(facts.accelerators[machine.accelerator].mig)
        turns: Values = {"kind": "time_sharing", "clients": draw(st.integers(2, 8))}
        parts = [{"kind": "mig", "partition": size} for size in sizes]
        extra["sharing"] = draw(st.sampled_from([turns, *parts]))
    return {
        "name": name,
        "machine": machine.name,
        "purpose": purpose,
        "purchase": {"kind": kind} | ({"id": RESERVATION} if kind in ("reserved", "block") else {}),
        "zones": chosen,
        "rdma": rdma,
        "min_nodes": 0 if kind == "queued" else draw(st.integers(0, largest)),
        "max_nodes": largest,
    }, extra


def _gpus(made: Values, extra: Values) -> int:
    """What a node of the pool offers."""
    sharing = extra.get("sharing", {})
    return pools.gpus_of_node(
        facts.machine_type(made["machine"]),
        clients=sharing.get("clients"),
        partition=sharing.get("partition"),
    )


@st.composite
def teams(draw: st.DrawFn, free: dict[str, int], shared: set[str]) -> list[Values]:
    """One to three teams that share the GPUs that are free in each pool, in shares where it is `shared`."""
    count = draw(st.integers(1, 3))
    whole = {name: gpus for name, gpus in free.items() if name not in shared}
    parts = {name: gpus for name, gpus in free.items() if name in shared}
    return [
        {
            "name": f"Team {index}",
            "gpus": {name: draw(st.integers(0, gpus // count)) for name, gpus in whole.items()},
            "shares": {name: draw(st.integers(0, gpus // count)) for name, gpus in parts.items()},
            "weight": draw(st.floats(0.001, 1000)),
            **draw(st.sampled_from(BUDGETS)),
        }
        for index in range(count)
    ]


@st.composite
def stack_files(draw: st.DrawFn) -> Values:
    """The settings of a stack file, as plain values."""
    region = draw(st.sampled_from(REGIONS))
    known = facts.region(region).zones
    zones = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
    drawn = [draw(pool(region, zones, f"p{index}")) for index in range(draw(st.integers(1, 3)))]
    drawn[-1][1].pop("sharing", None)  # one pool is open to every job
    made = [{**each, "own_queue": True} if "sharing" in extra else each for each, extra in drawn]
    made = draw(windowed(made))
    drawn = [(each, extra) for each, (_, extra) in zip(made, drawn, strict=True)]
    gated = draw(st.booleans())
    whole = [each["name"] for each, extra in drawn if "sharing" not in extra]
    named = draw(st.none() | st.lists(st.sampled_from(whole), min_size=1, unique=True)) if whole else None
    validated = [
        each
        for each in made
        if (each["purpose"] != "interactive" if named is None else each["name"] in named)
    ]
    nodes = draw(st.integers(1, min((each["max_nodes"] for each in validated), default=1)))
    free = {
        each["name"]: _gpus(each, extra) * (each["max_nodes"] - (nodes if gated and each in validated else 0))
        for each, extra in drawn
    }
    endpoint = draw(st.sampled_from(["dns", "ip"]))
    spec: Values = {
        **_OWNED,
        "layout": {
            "zones": zones,
            "pools": made,
            "api_access": ["203.0.113.0/24"] if endpoint == "ip" else [],
        },
        "on": {
            "project": "example-ml-dev",
            "billing_account": "012345-6789AB-CDEF01",
            "admins": ["group:platform@example.com"],
            "endpoint": endpoint,
            "accelerator_networks": draw(st.sampled_from(["managed", "managed", "classic"])),
            "pools": {each["name"]: extra for each, extra in drawn if extra},
        },
        "data": {"shared_fs": None, "homes": draw(st.booleans()), "protect": draw(st.booleans())},
        "tracking": {"image": f"registry.example.com/mlflow{DIGEST}"},
        "teams": draw(teams(free, {each["name"] for each, extra in drawn if "sharing" in extra})),
        "budget": {"monthly_usd": 5000, "alert_emails": ["a@example.com"]},
        "smoke": {
            "enabled": gated,
            "pools": named,
            "nodes": nodes,
            "image": f"registry.example.com/torch{DIGEST}",
            "schedule": draw(st.sampled_from([None, "0 5 * * 1"])) if gated else None,
        },
    }
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        path = draw(st.sampled_from(sorted(WILD)))
        at(spec, path, draw(WILD[path]))
    return {"cloud": "gcp", "profile": "medium", "region": region, "spec": spec}
