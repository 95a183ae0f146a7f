"""A state against a project of Google Cloud: what bears the stack's label, and is not in its state."""

from dataclasses import replace
from typing import Any

from infra.naming import gcp_labels, lasting_tags
from policies.resource import Resource
from policies.sources.live.join import Join, joined
from policies.sources.live.records import account
from tests.trainstack.collect.project import ID, Project
from trainstack.collect.gcp.project import collect

BUCKET = "gcp:storage/bucket:Bucket"
LABELS = gcp_labels(lasting_tags("Team_A/Dev"))


def bucket(project: Project, name: str, labels: dict[str, str]) -> None:
    data = {"id": name, "name": name, "location": "US", "labels": labels}
    project.add("storage.googleapis.com/Bucket", f"//storage.googleapis.com/{name}", data)


def managed(name: str) -> Resource:
    asked: dict[str, Any] = {"name": name, "location": "US"}
    return Resource(
        BUCKET, f"urn:pulumi:dev::app::{BUCKET}::{name}", name, id=name, account=ID, props=asked, asked=asked,
        tags=LABELS,
    )  # fmt: skip


def against(state: list[Resource], **buckets: dict[str, str]) -> Join:
    project = Project()
    for name, labels in buckets.items():
        bucket(project, name, labels)
    return joined(state, account(collect(ID, project.session())))


def test_what_bears_the_label_of_the_stack_and_is_not_in_its_state_is_unmanaged() -> None:
    node = {**LABELS, "goog-gke-node": ""}
    other = gcp_labels(lasting_tags("other"))
    found = against([managed("kept")], kept=LABELS, forgotten=LABELS, node=node, other=other, bare={})
    assert [(one.what, one.resource.id) for one in found.differences] == [("unmanaged", "forgotten")]
    assert "team_a_dev" in found.differences[0].message
    assert list(found.imports) == [{"type": BUCKET, "name": "forgotten", "id": "forgotten"}]


def test_a_state_without_labels_claims_all_that_any_stack_labelled() -> None:
    found = against([replace(managed("kept"), tags={})], kept={}, forgotten=LABELS, bare={})
    assert [(one.what, one.resource.id) for one in found.differences] == [("unmanaged", "forgotten")]
