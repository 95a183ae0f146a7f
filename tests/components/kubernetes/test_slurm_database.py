"""The database of Slurm's accounting: its disk is protected as the stack's other data."""

import pulumi
import pytest

from components.kubernetes.slurm.database import DatabaseArgs, database
from tests.components.graph import Graph, deploy_graph

_IMAGE = f"docker.io/library/mariadb@sha256:{'a' * 64}"


def made(*, size_gib: int = 50, protect: bool = False) -> Graph:
    def child(opts: pulumi.ResourceOptions | None = None) -> pulumi.ResourceOptions:
        return opts or pulumi.ResourceOptions()

    args: DatabaseArgs = {"size_gib": size_gib, "storage_class": "disk", "protect": protect}

    def program() -> dict[str, int]:
        return {"resources": len(database("slurm", _IMAGE, args, pulumi.ResourceOptions(), child))}

    return deploy_graph(program)


@pytest.mark.parametrize("protect", [True, False])
def test_the_disk_is_protected_as_the_data_of_the_stack(*, protect: bool) -> None:
    assert made(protect=protect).requests["PersistentVolumeClaim:slurm-claim"].protect is protect


def test_a_larger_disk_changes_the_claim_alone() -> None:
    small, large = made(), made(size_gib=100)
    assert small.find("PersistentVolumeClaim") != large.find("PersistentVolumeClaim")
    assert small.find("StatefulSet") == large.find("StatefulSet")
