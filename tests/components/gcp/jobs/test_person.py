"""Rights of two people on folders of code, evaluated as Cloud Storage does."""

from collections.abc import Mapping
from typing import Any

import pytest

from components.gcp.jobs.person import GcpPerson, PersonFoldersArgs
from rehearsal.core.state import State
from rehearsal.dataplane.gcp.iam_bindings import allowed_object
from tests.components.gcp.computed import COMPUTED, PROJECT
from tests.components.graph import deploy_graph

FOLDERS: PersonFoldersArgs = {
    "dataset_bucket": "datasets",
    "shared": "shared/",
    "datasets": "teams/vision/",
    "checkpoint_bucket": "checkpoints",
    "checkpoints": "teams/vision/",
    "artifact_bucket": "artifacts",
    "runs": "runs/",
}
ADA = {f"serviceAccount:dev-job-ada@{PROJECT}.iam.gserviceaccount.com", "user:ada@example.com"}
EVE = {f"serviceAccount:dev-job-eve@{PROJECT}.iam.gserviceaccount.com", "user:eve@example.com"}


def _program() -> Mapping[str, Any]:
    for who in ("ada", "eve"):
        GcpPerson(
            who,
            {
                "project": PROJECT,
                "stack": "dev",
                "person": who,
                "email": f"{who}@example.com",
                "folders": FOLDERS,
                "jobs_role": "jobs",
                "signs_role": "signs",
            },
        )
    return {}


@pytest.mark.parametrize("member", sorted(EVE))
def test_a_member_changes_and_reads_no_code_of_a_colleague_or_of_the_gate(member: str, state: State) -> None:
    bucket = state.insert(
        package="gcp", type="gcp:storage/bucket:Bucket", scope=PROJECT, id="artifacts", urn="b", name="b",
        inputs={}, outputs={"project": PROJECT},
    )  # fmt: skip
    state.issue(bucket, {"artifacts"})
    for name, made in deploy_graph(_program, COMPUTED).all("ManagedFolderIamMember").items():
        right = state.insert(
            package="gcp", type="gcp:storage/managedFolderIamMember:ManagedFolderIamMember", scope=PROJECT,
            id=name, urn=name, name=name, inputs=dict(made), outputs={},
        )  # fmt: skip
        if made["bucket"] == "artifacts":
            state.refer(right, {"bucket": bucket})

    def may(who: str, permission: str, name: str) -> bool:
        return allowed_object(state, {who}, f"storage.objects.{permission}", bucket, name)

    for folder in ("code/ada/0ab1/", "code/gate-0ab1/"):
        assert not any(may(member, what, f"{folder}x") for what in ("create", "get", "delete", "update"))
        assert not may(member, "list", folder) and not may(member, "list", "code/")
    for who in ADA:
        assert may(who, "create", "code/ada/0ab1/x") and may(who, "get", "code/ada/0ab1/x")
        assert not may(who, "delete", "code/ada/0ab1/x")


@pytest.fixture
def state(tmp_path: Any) -> Any:
    found = State(tmp_path / "state.sqlite")
    yield found
    found.close()
