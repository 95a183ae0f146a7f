"""Files of new clients on Google Cloud."""

import re
from collections.abc import Mapping
from typing import Any

from infra.catalog.gcp import facts
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from trainstack.stamp.cloud import StampedCloud, Zones

_NUMBER = "000000000000"
"""In place of the number of a project, which only Google knows."""


def _pool_zones(shipped: Zones, offered: Zones) -> Zones:
    return [one for one in shipped if one in offered] or offered[:1] or shipped


def _accelerator(machine: str) -> str:
    found = facts.machine_types.get(machine)
    return found.accelerator if found else ""


def _account_answers(spec: StackSpec) -> Mapping[str, Mapping[str, Any]]:
    assert isinstance(spec.on, GcpSpec)
    project = {"id": spec.on.project, "projectId": spec.on.project, "number": _NUMBER}
    agent = f"service-{_NUMBER}@gs-project-accounts.iam.gserviceaccount.com"
    return {
        "gcp:organizations/getProject:getProject": project,
        "gcp:storage/getProjectServiceAccount:getProjectServiceAccount": {
            "id": agent,
            "emailAddress": agent,
            "member": f"serviceAccount:{agent}",
        },
    }


STAMPED = StampedCloud(
    shipped={
        "small": "small-gcp",
        "small-cluster": "small-gke-gcp",
        "medium": "dev-gcp",
        "large-slurm": "large-slurm-gcp",
    },
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
    account_answers=_account_answers,
)
