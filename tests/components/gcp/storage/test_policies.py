"""The policy pack judges a storage with everything on, as a stack of production."""

import json
from pathlib import Path
from typing import Any

from tests.components.gcp.computed import PROJECT
from tests.components.gcp.storage.cloud import HOMES, LUSTRE, storage
from tests.trainstack.cli.command import run

PROVIDER = "urn:pulumi:dev::app::pulumi:providers:gcp::gcp"
LABELS = {
    "owner": "ml_at_example_com", "cost-center": "42", "environment": "prod", "data-class": "internal",
    "expires-on": "never", "trainstack-stack": "dev",
}  # fmt: skip


def state() -> dict[str, Any]:
    """What a deployment would have left, as far as the mocks know it."""
    made = storage(lustre=LUSTRE, homes=HOMES, rapid_zone="us-central1-a", cache_zones=["us-central1-a"])
    options = {(request.type, request.name): request for request in made.requests.values()}
    named = {"project": PROJECT, "region": "us-central1", "version": "10.2.0"}
    rows: list[dict[str, Any]] = [
        {
            "urn": PROVIDER, "type": "pulumi:providers:gcp", "custom": True, "id": "one",
            "inputs": named, "outputs": named,
        }
    ]  # fmt: skip
    for asked in made.cloud.asked:
        if asked.type.startswith("gcp:"):
            inputs = dict(asked.properties)
            outputs = {"name": asked.name, "effectiveLabels": LABELS, "pulumiLabels": LABELS, **inputs}
            rows.append(
                {
                    "urn": f"urn:pulumi:dev::app::{asked.type}::{asked.name}", "type": asked.type,
                    "custom": True, "id": f"{asked.name}-id", "provider": f"{PROVIDER}::one",
                    "inputs": inputs, "outputs": outputs,
                    "protect": options[asked.type, asked.name].protect,
                }
            )  # fmt: skip
    return {"version": 3, "deployment": {"resources": rows}}


def test_every_rule_holds_but_that_lustre_has_a_key_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text(json.dumps(state()))
    _, said = run("audit", "--state", str(file), "--format", "json", "--at", "2026-11-23T12:00:00Z")
    outcomes = json.loads(said)["outcomes"]
    passed = {one["rule"] for one in outcomes if one["result"] == "pass"}
    assert {f"MLS-STO-{number}" for number in ("01", "02", "03", "04", "10", "12", "13")} <= passed
    open_ = [one for one in outcomes if one["result"] in ("fail", "undetermined", "waived")]
    # GKE cannot use an instance with such a key (components/gcp/storage/lustre.py).
    assert {(one["rule"], one.get("name")) for one in open_} <= {("MLS-STO-05", "dev-storage-lustre")}
