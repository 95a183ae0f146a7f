"""Files of new clients on Google Cloud."""

import re

from infra.catalog.gcp import facts
from trainstack.stamp.cloud import StampedCloud, Zones


def _pool_zones(shipped: Zones, offered: Zones) -> Zones:
    return [one for one in shipped if one in offered] or offered[:1] or shipped


def _accelerator(machine: str) -> str:
    found = facts.machine_types.get(machine)
    return found.accelerator if found else ""


STAMPED = StampedCloud(
    shipped={"small": "small-gcp", "small-cluster": "small-gke-gcp", "medium": "dev-gcp"},
    account_key="project",
    # Source: Resource Manager API reference, `Project.projectId`.
    account=re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]"),
    account_rule="must be the id of a Google Cloud project: 6 to 30 lower-case letters, digits and dashes",
    account_example="acme-ml",
    regions=facts.regions,
    offering_zones=facts.offering_zones,
    pool_zones=_pool_zones,
    # Beside the file system of the replaced pool, where it offers the machine.
    training_zone=lambda replaced, offered: next((one for one in replaced if one in offered), replaced[0]),
    accelerator=_accelerator,
    substitute=lambda body, _: body,
)
