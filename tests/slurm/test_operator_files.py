"""slurm.conf from the objects of slurm-operator, as its source builds it."""

from typing import Any

import pytest

from rehearsal.slurm.slinky import OperatorSystem

FOLDER = "/etc/slurm"


def nodeset(name: str, replicas: int, gres: str = "") -> tuple[str, dict[str, Any]]:
    conf = " ".join(filter(None, [gres, "Features=training", "Weight=10"]))
    return name, {
        "replicas": replicas,
        "slurmd": {"resources": {"limits": {"cpu": "4", "memory": "2Gi"}}},
        "extraConf": conf,
        "partition": {"enabled": True, "config": "MaxTime=1:00:00"},
        "template": {"spec": {"hostname": f"{name}-"}},
    }


@pytest.fixture
def files() -> dict[str, str]:
    extra = "HealthCheckProgram=/opt/trainstack/slurm/health.sh\nPriorityWeightQOS=1"
    return OperatorSystem(
        "research",
        {"extraConf": extra},
        (nodeset("p4d", 3, "Gres=gpu:a100:8"), nodeset("cpu", 1)),
        {"health.sh": "#!/bin/sh\n", "prolog.sh": "#!/bin/sh\n", "epilog.sh": "#!/bin/sh\n"},
    ).rendered(FOLDER)


def test_pods_of_a_node_set_are_nodes_from_zero_with_its_name_as_a_feature(files: dict[str, str]) -> None:
    lines = files["slurm.conf"].splitlines()
    (node,) = (line for line in lines if line.startswith("NodeName=p4d-[0-2] "))
    assert {"CPUs=4", "Gres=gpu:a100:8", "RealMemory=2048", "Feature=p4d,training"} <= set(node.split())
    assert any(line.startswith("NodeName=cpu-0 ") for line in lines)


def test_a_node_set_is_a_partition_of_nodes_with_its_feature(files: dict[str, str]) -> None:
    lines = files["slurm.conf"].splitlines()
    assert lines.index("NodeSet=p4d Feature=p4d") + 1 == lines.index(
        "PartitionName=p4d Nodes=p4d MaxTime=1:00:00"
    )


def test_scripts_are_those_of_the_folder_and_extra_settings_come_last(files: dict[str, str]) -> None:
    lines = files["slurm.conf"].splitlines()
    assert f"Prolog={FOLDER}/prolog.sh" in lines
    assert lines[-2:] == [f"HealthCheckProgram={FOLDER}/health.sh", "PriorityWeightQOS=1"]


def test_only_nodes_with_gpus_have_a_row_of_gres(files: dict[str, str]) -> None:
    assert files["gres.conf"] == "NodeName=p4d-[0-2] AutoDetect=nvml Name=gpu Type=a100\n"
