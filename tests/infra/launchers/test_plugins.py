"""Pods that wait for the NCCL plugin of their node."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.gcp.pools.installers import daemons
from infra.launchers import kubeflow, kubernetes, plugins
from infra.launchers.fabrics import PodNeeds, on_nodes
from infra.launchers.gcp import gke
from infra.launchers.runplan import RunPlan, RunPlanError

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
    (daemon, *_) = daemons([{"fabric": fabric, "pools": ["gpu"]}])
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


def run_wait(folder: Path, fabric: str = "rdma", **replaced: str) -> subprocess.CompletedProcess[str]:
    """The init container of a fabric, with its folders below a temporary one."""
    first = pod_of(NEEDS[fabric]())["initContainers"][0]
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


def marked(folder: Path, image: str, version: str) -> None:
    """Nodes with another version of a plugin."""
    done = Path(gke.installed(f"{image.rpartition(':')[0]}:{version}", str(folder / "local/nvidia")))
    done.parent.mkdir(parents=True, exist_ok=True)
    done.touch()


@pytest.mark.parametrize(("fabric", "image"), [("tcpx", gke.TCPX_PLUGIN), ("tcpxo", gke.TCPXO_PLUGIN)])
def test_a_pod_whose_daemon_is_older_than_the_node_s_plugin_fails_at_once(
    fabric: str, image: str, tmp_path: Path
) -> None:
    marked(tmp_path, image, "v99.0.10")
    ended = run_wait(tmp_path, fabric)
    assert ended.returncode != 0
    assert "v99.0.10" in ended.stderr and image.rpartition(":")[2] in ended.stderr


def test_a_job_that_was_submitted_under_an_older_gib_uses_the_newer_one(tmp_path: Path) -> None:
    gib, conf = tmp_path / "local/nvidia/gib/scripts", tmp_path / "run"
    for folder in (gib, conf, tmp_path / "local/gib"):
        folder.mkdir(parents=True)
    (gib / "set_nccl_env.sh").write_text("export NCCL_IB_TC=53\n")
    marked(tmp_path, gke.GIB_PLUGIN, "v1.10.0")
    assert run_wait(tmp_path).returncode == 0
    assert (conf / "nccl.conf").read_text().split() == ["NCCL_IB_TC=53"]


@pytest.mark.parametrize("fabric", NEEDS)
def test_a_node_with_an_older_plugin_is_about_to_get_the_newer_one(fabric: str, tmp_path: Path) -> None:
    image = {"tcpx": gke.TCPX_PLUGIN, "tcpxo": gke.TCPXO_PLUGIN, "rdma": gke.GIB_PLUGIN}[fabric]
    marked(tmp_path, image, "v0.9.9")
    ended = run_wait(tmp_path, fabric, WAIT_S="0")
    assert ended.returncode != 0
    assert Path(gke.installed(image, "")).name in ended.stderr and "v0.9.9" not in ended.stderr


def test_a_train_job_on_the_runtime_has_them_without_a_command_of_the_launcher() -> None:
    body = kubeflow.runtime(PLAN, needs=gke.gib())
    (job,) = body["spec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    assert [one["name"] for one in pod["initContainers"]] == [plugins.CONTAINER]
    (run,) = pod["containers"]
    paths = {mount["mountPath"]: mount for mount in run["volumeMounts"]}
    assert {"/etc/nccl.conf", "/usr/local/gib"} <= paths.keys()
    # The init container writes the file that the run has there, for any version of NCCL.
    configuration = paths["/etc/nccl.conf"]
    (waiting,) = pod["initContainers"]
    written = {mount["name"]: mount["mountPath"] for mount in waiting["volumeMounts"]}
    file = f"{written[configuration['name']]}/{configuration['subPath']}"
    assert file in waiting["command"][2]
    assert {mount["name"] for mount in run["volumeMounts"]} <= {each["name"] for each in pod["volumes"]}


@pytest.mark.parametrize("render", [kubeflow.train_job, kubeflow.mpi_job])
def test_kinds_that_cannot_wait_refuse(render: Any) -> None:
    with pytest.raises(RunPlanError, match="plugin"):
        render(on_nodes(PLAN, NEEDS["rdma"]()))
