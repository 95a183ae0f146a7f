"""Logging in to a cluster stores no secret, and the server is always checked."""

import json

from components.gcp.cluster.kubeconfig import kubeconfig

DNS = "https://gke-0123456789ab-123456789012.us-central1.gke.goog"


def test_tokens_come_from_the_account_at_the_time_of_use() -> None:
    (user,) = json.loads(kubeconfig("dev", DNS))["users"]

    assert set(user["user"]) == {"exec"}
    assert user["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"
    assert user["user"]["exec"]["provideClusterInfo"] is True
    assert "env" not in user["user"]["exec"]


def test_the_login_is_that_of_everything_else_and_not_of_gcloud() -> None:
    (user,) = json.loads(kubeconfig("dev", DNS))["users"]

    assert user["user"]["exec"]["args"] == ["--use_application_default_credentials"]


def test_a_dns_endpoint_is_checked_by_public_authorities_and_an_address_by_the_clusters_own() -> None:
    (by_name,) = json.loads(kubeconfig("dev", DNS, ""))["clusters"]
    (by_address,) = json.loads(kubeconfig("dev", "https://34.1.2.3", "Q0E="))["clusters"]

    assert by_name["cluster"] == {"server": DNS}
    assert by_address["cluster"] == {"server": "https://34.1.2.3", "certificate-authority-data": "Q0E="}


def test_the_context_is_named_after_the_cluster() -> None:
    config = json.loads(kubeconfig("dev", DNS))

    assert config["current-context"] == "dev"
    assert config["contexts"] == [{"name": "dev", "context": {"cluster": "dev", "user": "dev"}}]
