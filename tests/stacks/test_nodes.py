"""What jobs may ask of a node is below what the node has, on every type of the catalogue."""

import pytest

from infra.catalog.aws import facts
from stacks.nodes import EFA_HUGE_PAGES_GIB, cores_for_jobs, memory_for_jobs_gib


@pytest.mark.parametrize("name", sorted(facts.instance_types))
def test_a_job_never_gets_the_whole_node(name: str) -> None:
    machine = facts.instance_type(name)
    assert 1 <= cores_for_jobs(machine) < machine.vcpu
    assert 1 <= memory_for_jobs_gib(machine, efa=False) < machine.memory_mib / 1024


def test_huge_pages_are_taken_from_memory() -> None:
    machine = facts.instance_type("p4d.24xlarge")
    whole = memory_for_jobs_gib(machine, efa=False)
    assert memory_for_jobs_gib(machine, efa=True) == whole - EFA_HUGE_PAGES_GIB


def test_a_large_node_keeps_what_eks_documents_and_our_agents_take() -> None:
    # 96 cores: 0.06 + 0.01 + 0.005 + 0.005 + 92 * 0.0025 = 0.31 reserved, 1 for agents.
    assert cores_for_jobs(facts.instance_type("p4d.24xlarge")) == 94
