"""Pods that wait for the NCCL plugin of their node."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.gcp.pools.installers import daemons
from smoke_training.launchers import kubeflow, kubernetes, plugins
from smoke_training.launchers.fabrics import PodNeeds, on_nodes
from smoke_training.launchers.gcp import gke
from smoke_training.launchers.runplan import RunPlan, RunPlanError

PLAN = RunPlan(
    name="run", image="example.com/train@sha256:0", command=("train.py",), nodes=2, gpus_per_node=8, cpu=80,
    memory_gib=900, timeout_s=60, device_claims={"rdma": "torch-a4"},
)  # fmt: skip
NEEDS: dict[str, Callable[[], PodNeeds]] = {
    "tcpx": lambda: gke.tcpx([f"vpc{index}" for index in range(1, 5)]),
    "tcpxo": lambda: gke.tcpxo([f"vpc{index}" for index in range(1, 9)]),
    "rdma": gke.gib,
}


def pod_of(needs: PodNeeds) -> dict[str, Any]:
    (body,) = kubernetes.jobset(on_nodes(PLAN, needs))
    (job,) = body["spec"]["replicatedJobs"]
    pod: dict[str, Any] = job["template"]["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize("fabric", NEEDS)
def test_a_pod_first_waits_for_the_file_that_the_installer_creates_last(fabric: str) -> None:
    pod = pod_of(NEEDS[fabric]())
    first, *_ = pod["initContainers"]
    (daemon, *_) = daemons([{"fabric": fabric, "architecture": "x86_64", "pools": ["gpu"]}])
    copy = daemon["spec"]["template"]["spec"]["initContainers"][-1]
    assert first["image"] == copy["image"], "it is on the node already"
    awaited = first["command"][4]
    assert copy["command"][-1].endswith(f"touch {awaited.replace(gke.NVIDIA, '/target')}\n")
    # The run gets its GPUs, its processors and its adapters.
    (run,) = pod["containers"]
    assert first["resources"]["limits"]["nvidia.com/gpu"] == run["resources"]["limits"]["nvidia.com/gpu"]
    assert first["resources"]["requests"] == first["resources"]["limits"]
    assert first["resources"]["claims"] == run["resources"]["claims"]
    assert first["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(
    ("fabric", "network"), [("tcpx", "GPUDirectTCPX_v7"), ("tcpxo", "FasTrak"), ("rdma", "gIB")]
)
def test_nccl_uses_the_plugin_or_fails(fabric: str, network: str) -> None:
    (run,) = pod_of(NEEDS[fabric]())["containers"]
    assert {"name": "NCCL_NET", "value": network} in run["env"]


def run_wait(folder: Path, **replaced: str) -> subprocess.CompletedProcess[str]:
    """The init container of gIB, with its folders below a temporary one."""
    first = pod_of(gke.gib())["initContainers"][0]
    words = [
        word.replace("/usr/local", f"{folder}/local").replace("/run/nccl", f"{folder}/run")
        for word in first["command"]
    ]
    for old, new in replaced.items():
        words[2] = words[2].replace(str(getattr(plugins, old)), new)
    return subprocess.run(words, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})


def test_a_plugin_that_is_installed_gives_any_command_its_folder_and_its_variables(tmp_path: Path) -> None:
    gib, linked, conf = tmp_path / "local/nvidia/gib", tmp_path / "local/gib", tmp_path / "run"
    for folder in (gib / "scripts", linked, conf):
        folder.mkdir(parents=True)
    profile = gib / "scripts/set_nccl_env.sh"
    profile.write_text("export NCCL_IB_TC=52\nNCCL_CROSS_NIC=0\nOTHER=1\n")
    done = Path(gke.installed(gke.GIB_PLUGIN, str(tmp_path / "local/nvidia")))
    done.parent.mkdir()
    done.touch()
    assert run_wait(tmp_path).returncode == 0
    assert sorted((conf / "nccl.conf").read_text().split()) == ["NCCL_CROSS_NIC=0", "NCCL_IB_TC=52"]
    assert (linked / "scripts/set_nccl_env.sh").read_text() == profile.read_text()
    profile.unlink()
    assert run_wait(tmp_path).returncode != 0


def test_a_plugin_that_does_not_come_ends_the_pod_and_is_named(tmp_path: Path) -> None:
    ended = run_wait(tmp_path, WAIT_S="0")
    assert ended.returncode != 0
    assert Path(gke.installed(gke.GIB_PLUGIN, "")).name in ended.stderr


def test_a_train_job_on_the_runtime_has_them_without_a_command_of_the_launcher() -> None:
    body = kubeflow.runtime(PLAN, needs=gke.gib())
    (job,) = body["spec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    assert [one["name"] for one in pod["initContainers"]] == [plugins.CONTAINER]
    (run,) = pod["containers"]
    assert {"name": "NCCL_CONF_FILE", "value": "/run/nccl/nccl.conf"} in run["env"]
    paths = {mount["mountPath"] for mount in run["volumeMounts"]}
    assert {"/run/nccl", "/usr/local/gib"} <= paths
    assert {mount["name"] for mount in run["volumeMounts"]} <= {each["name"] for each in pod["volumes"]}


@pytest.mark.parametrize("render", [kubeflow.train_job, kubeflow.mpi_job])
def test_kinds_that_cannot_wait_refuse(render: Any) -> None:
    with pytest.raises(RunPlanError, match="plugin"):
        render(on_nodes(PLAN, NEEDS["rdma"]()))
