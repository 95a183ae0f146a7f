"""Settings of AWS PCS come from the same rows as slurm.conf."""

import pytest

from infra import slurm
from infra.slurm import conf, pcs
from tests.slurm import systems

SYSTEM = slurm.system(
    systems.spec("large-slurm-aws"), slurm.SystemOptions(version="25.11", folder="/opt/trainstack/slurm")
)


def test_settings_are_those_of_slurm_conf() -> None:
    text = conf.slurm_conf(SYSTEM)
    chosen = pcs.cluster_settings(SYSTEM)
    assert chosen.pop("AccountingStorageTRES") == "gres/gpu"
    assert chosen.pop("DefMemPerCPU") == "3891"
    assert chosen.pop("TaskProlog") == "/opt/trainstack/slurm/task-prolog.sh"
    assert chosen["PreemptType"] == "preempt/qos" and chosen["Prolog"] == "/opt/trainstack/slurm/prolog.sh"
    assert [f"{key}={value}" for key, value in chosen.items() if f"\n{key}={value}\n" not in text] == []


@pytest.mark.parametrize("index", range(3))
def test_a_queue_is_the_partition_line(index: int) -> None:
    partition = SYSTEM.partitions[index]
    text = conf.slurm_conf(SYSTEM)
    (line,) = (row for row in text.splitlines() if row.startswith(f"PartitionName={partition.name} "))
    chosen = pcs.queue_settings(SYSTEM, partition)
    assert [f"{key}={value}" for key, value in chosen.items() if f" {key}={value}" not in line] == []
    group = pcs.group_settings(partition)
    assert group["Weight"] == str(10 * (partition.rank + 1)) and int(group["RealMemory"]) > 0


def test_every_setting_that_cannot_be_made_is_known_with_its_effect() -> None:
    assert [
        one for one in pcs.not_settable(SYSTEM) if one not in pcs.SERVICE_SETS and one not in pcs.LOST
    ] == []
    assert set(pcs.LOST) <= set(pcs.not_settable(SYSTEM))
