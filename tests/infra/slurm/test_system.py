"""Specs that Slurm cannot have, and what follows from those that it can."""

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import slurm
from infra.errors import UserError
from infra.slurm.conf import billing_weights
from infra.slurm.machines import gpu_type
from infra.stackspec.purchases import CapacityBlock
from infra.stackspec.stack import StackSpec
from tests.slurm.systems import spec, with_pool, with_team
from tests.trainstack.cli.command import run


def _pool(**changes: Any) -> StackSpec:
    return with_pool(spec(), "a100", **changes)


def _team(**changes: Any) -> StackSpec:
    return with_team(spec(), "Vision", **changes)


@pytest.mark.parametrize(
    ("given", "code", "path"),
    [
        (_pool(name="default"), "slurm-name-reserved", "layout.pools[0].name"),
        (_pool(name="a,b"), "slurm-name-invalid", "layout.pools[0].name"),
        (_pool(machine="m9z.huge"), "slurm-machine-unknown", "layout.pools[0].machine"),
        (_team(name="Root"), "slurm-name-reserved", "teams[1].name"),
        (_team(name="!!"), "slurm-name-invalid", "teams[1].name"),
        (_team(name="research"), "slurm-account-twice", "teams[1].name"),
        (_team(gpus={"a100": 0}), "slurm-team-without-quota", "teams[1].gpus"),
        (spec("small-aws"), "slurm-needs-pools", "trainstack:profile"),
    ],
)
def test_a_value_that_slurm_cannot_have_is_refused(given: StackSpec, code: str, path: str) -> None:
    with pytest.raises(UserError) as refused:
        slurm.system(given, slurm.SystemOptions())
    assert (code, path) in refused.value.codes


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"version": "21.08"}, "slurm-version-too-old"),
        ({"version": "latest"}, "slurm-version-invalid"),
        ({"controller": "a b"}, "slurm-host-invalid"),
        ({"resume_program": "/opt/resume"}, "slurm-program-missing"),
        ({"folder": "etc"}, "slurm-path-invalid"),
        ({"folder": "/etc/my slurm"}, "slurm-path-invalid"),
        ({"nodes_per_switch": -1}, "slurm-switch-size"),
    ],
)
def test_an_option_that_slurm_cannot_have_is_refused(options: dict[str, Any], code: str) -> None:
    with pytest.raises(UserError) as refused:
        slurm.system(spec(), slurm.SystemOptions(**options))
    assert [found for found, _ in refused.value.codes] == [code]


@pytest.mark.parametrize("stack", ["dev-aws", "dev-gcp", "small-eks-aws", "small-gke-gcp"])
def test_shipped_stacks_have_files(stack: str) -> None:
    found = slurm.system(spec(stack), slurm.SystemOptions())
    files = slurm.files(found)
    lines = files["slurm.conf"].splitlines()
    # Each key has its reason in the line above.
    keys = [index for index, line in enumerate(lines) if line and not line.startswith("#")]
    settings = [index for index in keys if not lines[index].startswith(("NodeName", "PartitionName"))]
    assert len(settings) > 30
    assert [lines[index] for index in settings if not lines[index - 1].startswith("# ")] == []
    for name, text in files.items():
        if name.endswith(".sh"):
            subprocess.run(["sh", "-n"], input=text, text=True, check=True)


def test_billing_of_a_whole_node_is_its_price() -> None:
    (one, *_) = slurm.system(spec(), slurm.SystemOptions()).partitions
    assert one.usd is not None
    weights = billing_weights(one)
    whole = {"CPU": one.machine.cpus, "Mem": one.machine.memory_mib / 1024, "GRES/gpu": one.machine.gpus}
    assert [weights[key] * amount for key, amount in whole.items()] == pytest.approx([one.usd * 1000] * 3)


def test_switches_of_newer_versions_are_yaml() -> None:
    found = slurm.system(spec(), slurm.SystemOptions(nodes_per_switch=2))
    files = slurm.files(found)
    assert "topology.conf" not in files
    assert "TopologyPlugin" not in files["slurm.conf"]
    (tree,) = yaml.safe_load(files["topology.yaml"])
    switches = {one["switch"]: one.get("nodes") for one in tree["tree"]["switches"]}
    assert switches["leaf-a100-2"] == "a100-[3-4]"
    assert switches["leaf-l4"] == "l4-[1-8]"


def test_machines_of_minimum_nodes_are_never_suspended() -> None:
    options = slurm.SystemOptions(resume_program="/opt/resume", suspend_program="/opt/suspend")
    text = slurm.files(slurm.system(_pool(min_nodes=1), options))["slurm.conf"]
    assert "SuspendExcNodes=a100-1\n" in text
    a100 = [line.split() for line in text.splitlines() if line.startswith("NodeName=a100")]
    assert [(one[0], one[-1]) for one in a100] == [
        ("NodeName=a100-1", "State=UNKNOWN"),
        ("NodeName=a100-[2-4]", "State=CLOUD"),
    ]


def test_a_capacity_block_is_reserved_outside_its_times() -> None:
    block = CapacityBlock(
        kind="block", id="cr-1", starts="2026-12-01T11:30:00+01:00", ends="2026-12-08T11:30:00Z"
    )
    text = slurm.files(slurm.system(_pool(purchase=block), slurm.SystemOptions()))["reservations.sh"]
    assert "EndTime=2026-12-01T10:30:00 " in text
    assert "StartTime=2026-12-08T10:50:00 " in text  # 40 minutes before its end


@pytest.mark.parametrize(
    ("accelerator", "expected"),
    [("a100-40", "a100"), ("nvidia-tesla-a100", "a100"), ("nvidia-h100-mega-80gb", "h100"), ("l40s", "l40s"),
     ("nvidia-rtx-pro-6000", "rtx_pro_6000")],
)  # fmt: skip
def test_the_type_of_a_gpu_is_a_part_of_its_name_in_nvml(accelerator: str, expected: str) -> None:
    assert gpu_type(accelerator) == expected


_HEALTHY = "00000000:10:1C.0, No, No\n00000000:20:1C.0, No, No\n"


@pytest.mark.parametrize(
    ("output", "code", "expected"),
    [
        (_HEALTHY, 0, 0),
        ("00000000:10:1C.0, [N/A], [N/A]\n", 0, 0),  # T4 and L4 do not remap rows
        ("Unable to load a library", 9, 0),  # not a fault of a GPU that is seen
        (_HEALTHY.replace("No, No", "No, Yes", 1), 0, 1),
        ("Unable to determine the device handle for GPU0000:10:1C.0: Unknown Error", 255, 1),
        ("No devices were found", 6, 1),
    ],
)
def test_a_check_fails_only_on_a_fault(tmp_path: Path, output: str, code: int, expected: int) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\nprintf '%s' '{output}'\nexit {code}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    prolog = slurm.files(slurm.system(spec(), slurm.SystemOptions()))["prolog.sh"]
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", prolog], env={"PATH": path}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, bool(done.stderr)) == (expected, bool(expected))


def test_the_command_writes_the_files(tmp_path: Path) -> None:
    code, output = run("slurm", "render", "-s", "dev-aws", "--out", str(tmp_path / "new"))
    assert code == 0
    assert "40 GPUs" in output
    written = {path.name for path in (tmp_path / "new").iterdir()}
    assert {"slurm.conf", "gres.conf", "topology.yaml", "accounts.sh"} < written
    assert os.access(tmp_path / "new" / "accounts.sh", os.X_OK)
