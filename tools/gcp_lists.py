"""Write the lists of Google Cloud that grow into the rehearsal's data: `rehearsal/gcp/provider/lists.json`.

    python -m tools.gcp_lists MACHINES ROLES

MACHINES is a git folder of Cyclenerd/google-cloud-pricing-cost-calculator, which keeps what `gcloud compute`
lists (machine types, zones, accelerators); ROLES one of iann0036/iam-dataset, which keeps predefined roles.
"""

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from infra.catalog.gcp import facts as catalog
from infra.engine.golang import ROOT
from rehearsal.gcp.provider import LISTS

_MACHINES, _ROLES = "Cyclenerd/google-cloud-pricing-cost-calculator", "iann0036/iam-dataset"


def _shown(folder: Path, path: str) -> str:
    command = ["git", "-C", str(folder), "show", f"HEAD:{path}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _revision(folder: Path) -> str:
    command = ["git", "-C", str(folder), "log", "-1", "--format=%h (%cs)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _column(folder: Path, file: str, name: str) -> list[str]:
    rows = csv.DictReader(_shown(folder, f"tools/{file}.csv").splitlines(), delimiter=";")
    return sorted({row[name] for row in rows if row[name]})


def _grouped(names: list[str], *, last: bool) -> dict[str, str]:
    """Names by what is before their first or last dash, with the rests."""
    found: dict[str, list[str]] = {}
    for name in names:
        head, _, rest = name.rpartition("-") if last else name.partition("-")
        found.setdefault(head, []).append(rest)
    return {head: " ".join(rests) for head, rests in found.items()}


def _zones(names: list[str]) -> dict[str, str]:
    """The letters of the zones of each region, with those of the catalog: an account may lack regions."""
    known = {zone for region in catalog.regions.values() for zone in region.zones}
    return _grouped(sorted({*names, *known}), last=True)


def main() -> None:
    """Write the data file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("machines", type=Path)
    parser.add_argument("roles", type=Path)
    given = parser.parse_args()
    roles: Any = json.loads(_shown(given.roles, "gcp/predefined_roles.json"))
    names = sorted({name.removeprefix("roles/") for name in _role_names(roles)})
    found = {
        "source": f"{_MACHINES}@{_revision(given.machines)} and {_ROLES}@{_revision(given.roles)}",
        "machines": _grouped(_column(given.machines, "machinetypes", "NAME"), last=False),
        "zones": _zones(_column(given.machines, "zones", "NAME")),
        "accelerators": _column(given.machines, "acceleratortypes", "NAME"),
        "roles": _by_service(names),
    }
    LISTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{LISTS.relative_to(ROOT)}: {LISTS.stat().st_size} bytes\n")


def _role_names(value: Any) -> set[str]:
    """Every name of a predefined role in a document."""
    if isinstance(value, str):
        return {value} if value.startswith("roles/") else set()
    inside = list(value.values()) + list(value) if isinstance(value, dict) else value
    return {name for one in inside for name in _role_names(one)} if isinstance(inside, list) else set()


def _by_service(names: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for name in names:
        service, _, rest = name.partition(".")
        found.setdefault(service, []).append(rest)
    return {service: " ".join(rests) for service, rests in found.items()}


if __name__ == "__main__":
    main()
