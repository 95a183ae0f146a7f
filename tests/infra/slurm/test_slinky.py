"""A Slurm system as settings of slurm-operator: its own rows are left to it, and GPUs are declared."""

from dataclasses import replace

from infra import slurm, stackspec
from infra.slurm import conf, slinky
from infra.slurm.system import SlurmSystem


def system() -> SlurmSystem:
    spec = stackspec.load_file("large-slinky-aws").spec
    return slurm.system(spec, slurm.SystemOptions(version="25.11", folder=slinky.SCRIPTS))


def rows(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_no_key_of_the_operator_is_written_twice() -> None:
    found = rows(slinky.extra_conf(system(), max_jobs=100))
    assert not set(found) & set(slinky.OPERATOR_SETS)
    assert found["AccountingStorageEnforce"] == "associations,limits,qos,safe"
    assert found["HealthCheckProgram"] == "/opt/trainstack/slurm/health.sh"
    assert found["MaxJobCount"] == "100"


def test_a_job_waits_for_nodes_that_have_not_registered_yet() -> None:
    assert rows(slinky.extra_conf(system(), max_jobs=None))["EnforcePartLimits"] == "NO"


def test_every_setting_is_the_operators_or_ours() -> None:
    known = {key for _, rows in conf.sections(system()) for key, *_ in rows}
    ours = set(rows(slinky.extra_conf(system(), max_jobs=None)))
    assert known <= ours | set(slinky.OPERATOR_SETS)


def words(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split())


def test_a_node_declares_its_gpus() -> None:
    (node,) = (one for one in system().partitions if one.name == "p4d")
    assert words(slinky.node_conf(node))["Gres"] == "gpu:a100:8"
    without = replace(node, machine=replace(node.machine, gpus=0))
    assert "Gres" not in slinky.node_conf(without)


PODS = {"p4d": (94, 1000 * 1024), "l4": (7, 25 * 1024)}


def test_all_gpus_of_a_node_go_to_jobs_of_one_gpu_with_the_defaults() -> None:
    found = slinky.in_pods(system(), PODS)
    for one in found.partitions:
        settings, (cpus, memory) = words(slinky.partition_conf(found, one)), PODS[one.name]
        assert int(settings["DefMemPerGPU"]) * one.machine.gpus <= memory
        # Jobs get whole cores, of two processors each.
        cores = -(-int(settings["DefCpuPerGPU"]) // 2)
        assert cores * one.machine.gpus <= cpus // 2
    assert {one.name: one.machine.cpus for one in found.partitions} == {"p4d": 94, "l4": 6}


def test_slurmd_itself_reports_the_memory_of_which_the_image_takes_all_but_the_pods() -> None:
    assert all("RealMemory" not in words(slinky.node_conf(one)) for one in system().partitions)


def test_devices_are_constrained() -> None:
    assert "ConstrainDevices=yes" in slinky.config_files()["cgroup.conf"].splitlines()


def test_a_partition_has_the_quotas_of_teams() -> None:
    found = dict(word.split("=", 1) for word in slinky.partition_conf(system(), system().default).split())
    assert {"Default", "AllowQos", "TRESBillingWeights"} <= set(found)
