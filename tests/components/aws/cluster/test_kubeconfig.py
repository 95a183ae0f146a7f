"""Logging in to a cluster stores no secret."""

import json

from components.aws.cluster.kubeconfig import kubeconfig


def test_tokens_come_from_the_account_at_the_time_of_use() -> None:
    config = json.loads(kubeconfig("dev", "https://k8s.example", "Q0E=", "eu-central-1"))
    (user,) = config["users"]
    assert user["user"]["exec"]["command"] == "aws"
    assert user["user"]["exec"]["args"][:2] == ["--region", "eu-central-1"]
    assert set(user["user"]) == {"exec"}
    (cluster,) = config["clusters"]
    assert cluster["cluster"] == {"server": "https://k8s.example", "certificate-authority-data": "Q0E="}
    assert config["current-context"] == "dev"
