import base64
import subprocess
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest
import yaml

from components.aws.pools.user_data import encoded, node_user_data


def parts(text: str | None) -> dict[str, str]:
    assert text is not None
    message = message_from_string(text)
    assert message.is_multipart()
    assert not message.defects
    found: dict[str, str] = {}
    for part in message.walk():
        assert isinstance(part, Message)
        if not part.is_multipart():
            found[part.get_content_type()] = str(part.get_payload())
    return found


def test_local_disks_become_one_striped_volume() -> None:
    found = parts(node_user_data(local_nvme=True, with_efa=False))
    config = yaml.safe_load(found["application/node.eks.aws"])

    assert list(found) == ["application/node.eks.aws"]
    assert (config["apiVersion"], config["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
    assert config["spec"] == {"instance": {"localStorage": {"strategy": "RAID0"}}}


def test_huge_pages_are_set_by_a_script_that_stops_at_its_first_error() -> None:
    found = parts(node_user_data(local_nvme=False, with_efa=True))
    script = found["text/x-shellscript"]

    assert script.startswith("#!")
    assert "set -euo pipefail" in script
    assert "vm.nr_hugepages = 5128" in script


def test_both_travel_in_one_message() -> None:
    found = parts(node_user_data(local_nvme=True, with_efa=True))

    assert set(found) == {"application/node.eks.aws", "text/x-shellscript"}


def test_containers_of_efa_nodes_may_lock_memory_and_keep_the_usual_limit_of_files() -> None:
    found = parts(node_user_data(local_nvme=False, with_efa=True))
    config = yaml.safe_load(found["application/node.eks.aws"])
    limits = config["spec"]["containerd"]["baseRuntimeSpec"]["process"]["rlimits"]
    assert {limit["type"]: (limit["soft"], limit["hard"]) for limit in limits} == {
        "RLIMIT_NOFILE": (65536, 1048576),
        "RLIMIT_MEMLOCK": (2**50, 2**50),
    }
    # nodeadm reads numbers as floats on the way to containerd, which wants 64 bits.
    assert all(int(float(limit["hard"])) == limit["hard"] < 2**63 for limit in limits)


def run_lustre_script(folder: Path, devices: int) -> tuple[int, list[str]]:
    """Run the script with stand-ins for the commands of a node; its exit status and the calls of lnetctl."""
    text = node_user_data(local_nvme=False, with_efa=True, lustre_over_efa=True)
    assert text is not None
    *_, script = (p for p in message_from_string(text).walk() if p.get_content_type() == "text/x-shellscript")
    for command in ("dnf", "modprobe", "lnetctl", "logger", "ip", "ls"):
        stand_in = folder / command
        outputs = {
            "ip": "echo default via 10.0.0.1 dev ens32",
            "ls": f"seq -f rdmap%g 1 {devices}",
            "logger": "cat > /dev/null",
        }
        stand_in.write_text(f'#!/bin/sh\necho "{command} $*" >> {folder}/calls\n{outputs.get(command, "")}\n')
        stand_in.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", str(script.get_payload())], env={"PATH": f"{folder}:/usr/bin:/bin"}, check=False
    )
    calls = (folder / "calls").read_text().splitlines()
    return done.returncode, [call for call in calls if call.startswith("lnetctl net add --net efa")]


@pytest.mark.parametrize(
    ("devices", "used"), [(1, [1]), (4, [1, 4]), (8, [*range(1, 9)]), (32, [*range(1, 33, 4)])]
)
def test_lustre_is_led_over_efa(tmp_path: Path, devices: int, used: list[int]) -> None:
    status, added = run_lustre_script(tmp_path, devices)
    assert status == 0
    assert added == [f"lnetctl net add --net efa --if rdmap{n} --peer-credits 32" for n in used]


def test_a_node_without_lustre_modules_still_joins(tmp_path: Path) -> None:
    run_lustre_script(tmp_path, 1)
    (tmp_path / "modprobe").write_text("#!/bin/sh\nexit 1\n")
    text = node_user_data(local_nvme=False, with_efa=True, lustre_over_efa=True)
    assert text is not None
    *_, script = (p for p in message_from_string(text).walk() if p.get_content_type() == "text/x-shellscript")
    done = subprocess.run(
        ["bash", "-c", str(script.get_payload())], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False
    )
    assert done.returncode == 0


def test_a_node_without_either_has_no_user_data() -> None:
    assert node_user_data(local_nvme=False, with_efa=False) is None
    assert encoded(None) is None


def test_a_launch_template_gets_it_in_base64() -> None:
    text = node_user_data(local_nvme=True, with_efa=False)

    assert base64.b64decode(encoded(text) or "").decode() == text


def run_partitions(folder: Path, modes: list[str]) -> tuple[list[int], list[str]]:
    """Install the unit, and boot with GPUs in these modes; exit status of each boot, and the calls.

    A mode of a boot is `FIRST|AFTER A WAIT`; empty where the query fails.
    """
    text = node_user_data(local_nvme=False, with_efa=False, partitions=["1g.5gb"] * 7)
    for place in ("usr/local/sbin", "etc/systemd/system", "var/lib", "bin"):
        (folder / place).mkdir(parents=True)
    outputs = {
        "nvidia-smi": f'case "$*" in *mig.mode*) cat {folder}/mode;; "mig -d"*) exit 6;; esac',
        "sleep": f"mv {folder}/later {folder}/mode || true",
        "systemctl": "",
    }
    for command, output in outputs.items():
        stand_in = folder / "bin" / command
        stand_in.write_text(f'#!/bin/sh\necho "{command} $*" >> {folder}/calls\n{output}\n')
        stand_in.chmod(0o755)
    env = {"PATH": f"{folder}/bin:/usr/bin:/bin", "ROOT": str(folder)}
    subprocess.run(["bash", "-c", parts(text)["text/x-shellscript"]], env=env, check=True)
    (folder / "calls").unlink()
    unit = (folder / "etc/systemd/system/trainstack-partition-gpus.service").read_text()
    assert "Before=kubelet.service" in unit and "RequiredBy=kubelet.service" in unit
    # These open the GPUs, and the mode is not enabled while they are open.
    earlier = {name for line in unit.splitlines() if line.startswith("After=") for name in line[6:].split()}
    assert {"set-nvidia-clocks.service", "nvidia-setup.service"} <= earlier
    statuses = []
    for mode in modes:
        (folder / "mode").unlink(missing_ok=True)
        for file, text in zip(("mode", "later"), mode.split("|"), strict=False):
            if text:
                (folder / file).write_text(text)
        program = [folder / "usr/local/sbin/trainstack-partition-gpus"]
        statuses.append(subprocess.run(program, env=env, check=False, capture_output=True).returncode)
    return statuses, (folder / "calls").read_text().splitlines()


ENABLED, PENDING = "Enabled\nEnabled\n", "Enabled\nDisabled\n"
CUT = "nvidia-smi mig -cgi 1g.5gb,1g.5gb,1g.5gb,1g.5gb,1g.5gb,1g.5gb,1g.5gb -C"


@pytest.mark.parametrize(
    ("modes", "statuses", "cuts", "restarts"),
    [
        ([ENABLED, ENABLED], [0, 0], 2, 0),  # parts are lost with every restart
        ([PENDING, ENABLED], [1, 0], 1, 1),
        ([PENDING, PENDING], [1, 1], 0, 1),  # kubelet never starts, and the node never joins
        ([""], [1], 0, 1),
        (["", ENABLED], [1, 0], 1, 1),
        ([f"{PENDING}|{ENABLED}"], [0], 1, 0),
        ([PENDING, ENABLED, PENDING, ENABLED], [1, 0, 1, 0], 2, 2),
    ],
    ids=[
        "hopper",
        "ampere",
        "refused",
        "no driver",
        "no answer before the restart",
        "in use at first",
        "later",
    ],
)
def test_gpus_are_cut_at_every_boot_before_kubelet(
    tmp_path: Path, modes: list[str], statuses: list[int], cuts: int, restarts: int
) -> None:
    done, calls = run_partitions(tmp_path, modes)
    assert done == statuses
    assert calls.count(CUT) == cuts
    assert calls.count("systemctl --no-block reboot") == restarts


def test_containers_on_nodes_with_shared_gpus_see_what_the_device_plugin_mounts(tmp_path: Path) -> None:
    text = node_user_data(local_nvme=False, with_efa=False, shared=True)
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    stand_in = tmp_path / "systemctl"
    stand_in.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/calls\n')
    stand_in.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "ROOT": str(tmp_path)}
    subprocess.run(["bash", "-c", parts(text)["text/x-shellscript"]], env=env, check=True)
    assert (tmp_path / "calls").read_text().splitlines() == [
        "daemon-reload",
        "enable trainstack-gpus-by-mount.service",
    ]
    unit = (units / "trainstack-gpus-by-mount.service").read_text().replace("\\\n", "")
    # Where it fails, the node does not join.
    assert "Before=kubelet.service" in unit and "RequiredBy=kubelet.service" in unit
    (command,) = (line[10:] for line in unit.splitlines() if line.startswith("ExecStart="))
    assert command.split() == [
        *("/usr/bin/nvidia-ctk", "config", "--in-place"),
        *("--set", "accept-nvidia-visible-devices-envvar-when-unprivileged=false"),
        *("--set", "accept-nvidia-visible-devices-as-volume-mounts=true"),
    ]
