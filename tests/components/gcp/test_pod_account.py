"""Permissions of pods, and their credentials."""

from collections.abc import Mapping
from typing import Any, cast

import pulumi

from components.gcp.pod_account import GcpPodAccount, GcpPodAccountArgs, metadata_grants, pod_principal
from tests.components.graph import Graph, deploy_graph

PODS = (
    "principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/"
    "ml-train-prod.svc.id.goog/subject/ns/team-vision/sa/default"
)
ARGS = {
    "project": "ml-train-prod",
    "project_number": "123456789012",
    "namespace": "team-vision",
    "service_account": "default",
}


def account(**rights: Any) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        return {"principal": GcpPodAccount("dev-pods", cast(GcpPodAccountArgs, ARGS | rights)).principal}

    return deploy_graph(program)


def test_the_principal_is_one_account_of_one_namespace_and_needs_no_account_of_google() -> None:
    assert pod_principal("ml-train-prod", "123456789012", "team-vision", "default") == PODS
    made = account(buckets={"artifacts": {"resource": "b", "role": "roles/storage.objectUser"}})
    assert made.outputs["principal"] == PODS
    assert not made.all("Account")


def test_rights_are_on_resources_and_never_on_the_project() -> None:
    made = account(
        buckets={"artifacts": {"resource": "artifacts", "role": "roles/storage.objectUser"}},
        folders={"own": {"resource": "ck", "folder": "teams/vision/", "role": "roles/storage.objectViewer"}},
        secrets={"admin": {"resource": "projects/p/secrets/s", "role": "roles/secretmanager.secretAccessor"}},
        topics={"alerts": {"resource": "projects/p/topics/t", "role": "roles/pubsub.publisher"}},
    )
    bucket, folder = made.find("BucketIAMMember"), made.find("ManagedFolderIamMember")
    assert (bucket["bucket"], bucket["role"]) == ("artifacts", "roles/storage.objectUser")
    assert (folder["bucket"], folder["managedFolder"]) == ("ck", "teams/vision/")
    assert made.find("SecretIamMember")["secretId"] == "projects/p/secrets/s"
    assert made.find("TopicIAMMember")["topic"] == "projects/p/topics/t"
    asked = [one for one in made.cloud.asked if one.type.startswith("gcp:")]
    assert len(asked) == 4 and {one.properties["member"] for one in asked} == {PODS}


def test_what_uses_the_principal_comes_after_its_rights() -> None:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        rights = {"topics": {"alerts": {"resource": "t", "role": "roles/pubsub.publisher"}}}
        made = GcpPodAccount("dev-pods", cast(GcpPodAccountArgs, ARGS | rights))
        later = GcpPodAccount("later", {**cast(GcpPodAccountArgs, ARGS), "topics": {
            "other": {"resource": made.principal, "role": "roles/pubsub.publisher"},
        }})  # fmt: skip
        return {"principal": later.principal}

    assert "TopicIAMMember:dev-pods-alerts" in deploy_graph(program).waits_for("TopicIAMMember:later-other")


def test_pods_reach_the_metadata_server_whatever_enforces_network_policies() -> None:
    grants = metadata_grants()
    assert grants["environment"] == {}, "Google's libraries find it by themselves"
    assert {(agent["cidr"], agent["port"]) for agent in grants["agents"]} == {
        ("169.254.169.254/32", 80),
        ("169.254.169.252/32", 988),
    }
