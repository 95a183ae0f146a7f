"""A whole storage of a stack."""

from collections.abc import Mapping
from typing import Any, cast

import pulumi

from components.gcp.storage.tiers import GcpStorage, GcpStorageArgs
from tests.components.gcp.computed import COMPUTED, PROJECT
from tests.components.graph import Graph, deploy_graph

NETWORK = f"projects/{PROJECT}/global/networks/dev"

DEFAULTS = {
    "project": PROJECT,
    "project_number": "123456789012",
    "region": "us-central1",
    "network_name": "dev",
    "services_network": NETWORK,
    "checkpoint_retention_days": 60,
    "noncurrent_days": 14,
    "log_retention_days": 90,
}
LUSTRE = {"zone": "us-central1-a", "capacity_gib": 36000, "throughput_mb_s_per_tib": 250}
HOMES = {"capacity_gib": 1024, "client_cidrs": ["10.0.0.0/20"]}


def storage(**more: Any) -> Graph:
    """Storage with the defaults, and what `more` adds to its arguments."""

    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = GcpStorage("dev-storage", cast(GcpStorageArgs, DEFAULTS | more))
        outputs: dict[str, pulumi.Input[Any]] = {
            name: getattr(made, name)
            for name in ("checkpoint_bucket", "dataset_bucket", "artifact_bucket", "key_id", "log_bucket")
        }
        outputs["shared_folder"] = made.shared_folder
        if made.lustre:
            outputs["lustre"] = made.lustre.instance
        if made.homes:
            outputs["homes"] = made.homes.address
        return outputs

    return deploy_graph(program, COMPUTED)
