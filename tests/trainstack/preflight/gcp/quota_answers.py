"""A project whose quotas a test chooses, and what others have in it."""

from collections.abc import Mapping
from typing import Any

from infra.catalog.gcp import facts
from tests.trainstack.preflight.gcp.asking import ID, Google, Said, aggregated, asked, project
from trainstack.preflight.answers import Answer
from trainstack.preflight.gcp import quotas

GET = "cloudquotas.projects.locations.services.quotaInfos.get"
PENDING = "cloudquotas.projects.locations.quotaPreferences.list"
URL = f"https://www.googleapis.com/compute/v1/projects/{ID}"
PLENTY = 100_000


def infos(allowed: Mapping[str, int]) -> Said:
    """Each quota's value by its key; of all others there is plenty."""
    by_id: dict[tuple[str, str], int] = {}
    for key, row in facts.quotas.items():
        by_id[row.quota_id, row.gpu_family or ""] = allowed.get(key, PLENTY)

    def respond(given: Mapping[str, Any]) -> Any:
        *_, service, _, quota_id = str(given["name"]).split("/")
        assert given["name"].startswith(f"projects/{ID}/locations/global/services/")
        rows = [(family, value) for (other, family), value in by_id.items() if other == quota_id]
        regional = next(row.regional for row in facts.quotas.values() if row.quota_id == quota_id)
        made = [
            {
                "dimensions": {
                    **({"region": "us-central1"} if regional else {}),
                    **({"gpu_family": family} if family else {}),
                },
                "details": {"value": str(value)},
                "applicableLocations": ["us-central1" if regional else "global"],
            }
            for family, value in rows
        ]
        other = {
            "dimensions": {"region": "us-east4"},
            "details": {"value": "7"},
            "applicableLocations": ["us-east4"],
        }
        return {
            "quotaId": quota_id,
            "service": service,
            "dimensionsInfos": [*([other] if regional else []), *made],
        }

    return respond


def google(allowed: Mapping[str, int] | None = None, **said: Said) -> Google:
    """A project with these quotas; `said`: resources of others, by the last word of a method."""
    lists: dict[str, Said] = {"networks": {"items": []}, "filestores": {"instances": []}}
    lists |= {key: aggregated(key, {}) for key in ("instances", "disks", "addresses", "reservations")}
    lists |= said
    return Google(
        {
            GET: infos(allowed or {}),
            PENDING: {"quotaPreferences": []},
            "compute.networks.list": lists["networks"],
            "file.projects.locations.instances.list": lists["filestores"],
            **{
                f"compute.{key}.aggregatedList": lists[key]
                for key in ("instances", "disks", "addresses", "reservations")
            },
        }
    )


def room(made: Google, **changes: Any) -> dict[str, Answer]:
    return {one.check.partition(" ")[2]: one for one in asked(quotas.room, project(made, **changes))}


def machine(type: str, gpus: tuple[str, int] | None = None, zone: str = "us-central1-a", **more: Any) -> Any:
    base = {
        "name": "x",
        "status": "RUNNING",
        "machineType": f"{URL}/zones/{zone}/machineTypes/{type}",
        **more,
    }
    if gpus:
        url = f"{URL}/zones/{zone}/acceleratorTypes/{gpus[0]}"
        base["guestAccelerators"] = [{"acceleratorType": url, "acceleratorCount": gpus[1]}]
    return base
