"""Existing resources of a project, known once they were seeded."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from rehearsal.core.model import RefusalError
from rehearsal.gcp.existing import seed
from rehearsal.projects.seeding import _resources
from tests.rehearsal.gcp.harness import Driver

KEY = "projects/research/locations/us-central1/keyRings/shared/cryptoKeys/data"
NETWORK = "projects/research/global/networks/shared"


def test_a_program_may_refer_to_what_was_seeded(google: Driver) -> None:
    ranges: dict[str, Any] = {"network": "shared", "name": "nodes", "ipCidrRange": "10.0.0.0/20"}
    with pytest.raises(RefusalError, match="notFound"):
        google.create("compute/subnetwork:Subnetwork", "nodes", **ranges)
    rows: list[dict[str, Any]] = [
        {"type": "gcp:compute/network:Network", "id": NETWORK},
        {"type": "gcp:kms/cryptoKey:CryptoKey", "id": KEY},
        {"type": "gcp:storage/bucket:Bucket", "id": "lake", "outputs": {"location": "US"}},
        {"type": "gcp:serviceaccount/account:Account", "id": "nodes@research.iam.gserviceaccount.com",
         "project": "research", "outputs": {"accountId": "nodes"}},
    ]  # fmt: skip
    assert seed(google.state, rows) == [row["id"] for row in rows]
    assert seed(google.state, rows) == []
    made = google.create("compute/subnetwork:Subnetwork", "nodes", **ranges)
    assert made["network"] == f"https://www.googleapis.com/compute/v1/{NETWORK}"
    google.create(
        "projects/iAMMember:IAMMember",
        "m",
        project="research",
        role="roles/viewer",
        member="serviceAccount:nodes@research.iam.gserviceaccount.com",
    )
    google.create("storage/bucketObject:BucketObject", "o", bucket="lake", name="a", content="x")
    assert google.invoke("compute/getNetwork:getNetwork", name="shared")["id"] == NETWORK


def test_a_resource_without_a_project_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "existing.yaml"
    file.write_text("- {type: gcp:pubsub/topic:Topic, id: alerts}")
    with pytest.raises(UserError, match="seed-needs-project"):
        list(_resources(file))
    file.write_text("- {type: gcp:pubsub/topic:Topic, id: alerts, project: research}")
    assert len(list(_resources(file))) == 1


def test_an_export_of_another_stack_brings_both_clouds(tmp_path: Path) -> None:
    rows = [
        {"type": "gcp:compute/network:Network", "id": NETWORK, "custom": True, "outputs": {"name": "shared"}},
        {"type": "aws:ec2/vpc:Vpc", "id": "vpc-1", "custom": True},
        {"type": "kubernetes:core/v1:Namespace", "id": "lab", "custom": True},
        {"type": "pulumi:pulumi:Stack"},
    ]
    file = tmp_path / "export.json"
    file.write_text(json.dumps({"deployment": {"resources": rows}}))
    assert [one["id"] for one in _resources(file)] == [NETWORK, "vpc-1"]
