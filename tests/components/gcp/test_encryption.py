"""Keys of Cloud KMS: for named users, renewed, and gone only after a while."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components.base import Component
from components.gcp.agents import COMPUTE, GKE, agent
from components.gcp.encryption import encryption_key
from tests.components.graph import Graph, deploy_graph

AGENTS = {
    "gke": "serviceAccount:service-123456789012@container-engine-robot.iam.gserviceaccount.com",
    "compute": "serviceAccount:service-123456789012@compute-system.iam.gserviceaccount.com",
}


class Consumer(pulumi.CustomResource):
    def __init__(self, name: str, **inputs: pulumi.Input[Any]) -> None:
        super().__init__("test:index:Consumer", name, inputs)


def key(name: str = "dev-cluster-key", *, keep: bool = False) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        cluster, number = Component("dev-cluster"), "123456789012"
        made = encryption_key(
            cluster,
            name,
            location="us-central1",
            purpose="Kubernetes secrets",
            users={
                what: agent(cluster, f"{what}-agent", service, project="ml", number=number)
                for what, service in (("gke", GKE), ("compute", COMPUTE))
            },
            keep=keep,
        )
        Consumer("disk", key=made.id)
        return {"id": made.id}

    return deploy_graph(program)


def test_only_those_who_are_named_may_use_it_and_for_nothing_but_encryption() -> None:
    grants = key().all("CryptoKeyIAMMember")

    assert {grant["member"] for grant in grants.values()} == set(AGENTS.values())
    assert {grant["role"] for grant in grants.values()} == {"roles/cloudkms.cryptoKeyEncrypterDecrypter"}
    assert {grant["cryptoKeyId"] for grant in grants.values()} == {"dev-cluster-key-id"}


def test_a_service_is_granted_the_key_once_its_agent_exists() -> None:
    for user in AGENTS:
        assert f"ServiceIdentity:{user}-agent" in key().waits_for(
            f"CryptoKeyIAMMember:dev-cluster-key-{user}"
        )


def test_whatever_encrypts_waits_for_the_right_to_do_so() -> None:
    before = key().waits_for("Consumer:disk")

    assert {f"CryptoKeyIAMMember:dev-cluster-key-{user}" for user in AGENTS} <= before


def test_it_lives_where_its_data_does_rotates_and_outlives_a_mistake_by_a_month() -> None:
    made = key()
    found = made.find("CryptoKey")

    assert made.find("KeyRing")["location"] == "us-central1"
    assert found["rotationPeriod"] == f"{90 * 24 * 3600}s"
    assert found["destroyScheduledDuration"] == f"{30 * 24 * 3600}s"
    assert found["labels"] == {"purpose": "kubernetes-secrets"}


def test_a_stack_can_be_made_again_because_no_name_is_fixed() -> None:
    made = key()

    assert "name" not in made.find("CryptoKey")
    assert "name" not in made.find("KeyRing")


def test_the_key_of_data_that_stays_is_not_destroyed() -> None:
    assert key().find("CryptoKey")["deletionPolicy"] == "DELETE"
    assert key(keep=True).find("CryptoKey")["deletionPolicy"] == "ABANDON"


def test_long_names_leave_room_for_what_makes_them_unique() -> None:
    made = key("a" * 32 + "-storage-of-checkpoints-and-data")
    (ring,), (found,) = made.all("KeyRing"), made.all("CryptoKey")

    assert ring != found
    assert all(len(one) + 8 <= 63 for one in (ring, found))
