"""metadata.sh and the checks of a node, with iptables as a file of rules."""

import subprocess
from pathlib import Path

import pytest

from infra import slurm
from infra.slurm import metadata
from tests.slurm import systems

IPTABLES = """#!/bin/sh
[ ! -e $0.locked ] || exit 4
shift 2; action=$1; shift; rule=$*; touch $0.rules
case $action in
  -C) grep -qxF -- "$rule" $0.rules || exit 1 ;;
  -I) { echo "$rule"; cat $0.rules; } > $0.new; mv $0.new $0.rules ;;
  -D) grep -vxF -- "$rule" $0.rules > $0.new; mv $0.new $0.rules ;;
esac
"""


class Machine:
    """A node with a folder of commands in place of those of its image."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tool("iptables", IPTABLES)
        for name in ("id", "useradd"):
            self._tool(name, "#!/bin/sh\n")
        self.sudoers = folder / "sudoers"
        text = metadata.first(str(folder)).replace(metadata.SUDOERS, str(self.sudoers))
        self._first = text.replace("/usr/sbin:/usr/bin", "/bin")
        options = slurm.SystemOptions(folder=str(folder), node_check=metadata.check(str(folder)))
        found = slurm.files(slurm.system(systems.spec("large-slurm-aws"), options))
        self._prolog, self._health = found["prolog.sh"], found["health.sh"]
        self._tool("scontrol", f'#!/bin/sh\necho "$@" > {folder}/drained\n')

    def _tool(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text)
        (self._folder / name).chmod(0o755)

    def file(self, name: str) -> Path:
        return self._folder / name

    def _run(self, text: str) -> int:
        path = f"{self._folder}:/usr/bin:/bin"
        return subprocess.run(["sh", "-c", text], env={"PATH": path}, check=False).returncode

    def first_boot(self) -> int:
        return self._run(self._first)

    def boot(self) -> int:
        return self._run(str(self.file(metadata.SCRIPT)))

    def prolog(self) -> int:
        return self._run(self._prolog)

    def drained(self) -> bool:
        self._run(self._health)
        return self.file("drained").exists()

    def targets(self) -> list[str]:
        """What happens to packets, by the first rules."""
        return [line.split()[-1] for line in self.file("iptables.rules").read_text().splitlines()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_each_boot_sets_the_rules_once_with_the_exception_first(machine: Machine) -> None:
    for boot in (machine.first_boot, machine.first_boot, machine.boot):
        assert boot() == 0
        assert machine.targets() == ["ACCEPT", "REJECT"]
    rules = machine.file("iptables.rules")
    rules.write_text(rules.read_text().splitlines()[0] + "\n")
    assert machine.boot() == 0
    assert machine.targets() == ["ACCEPT", "REJECT"]


def test_a_node_without_the_rule_takes_no_jobs(machine: Machine) -> None:
    machine.first_boot()
    assert machine.prolog() == 0 and not machine.drained()
    machine.file("iptables.rules").write_text("")  # as after a reboot, or `iptables -F`
    assert machine.prolog() == 1 and machine.drained()


def test_an_image_without_iptables_fails_at_boot_and_takes_no_jobs(machine: Machine) -> None:
    machine.file("iptables").unlink()
    assert machine.first_boot() == machine.boot() == 1
    assert machine.prolog() == 1


def test_a_lock_of_iptables_is_no_fault(machine: Machine) -> None:
    machine.first_boot()
    machine.file("iptables.locked").touch()
    assert machine.prolog() == 0 and not machine.drained()
    assert machine.boot() == 1  # where nothing is known, slurmd does not start


def test_a_node_of_another_home_has_no_such_check(machine: Machine) -> None:
    assert not machine.file(metadata.SCRIPT).exists()
    assert machine.prolog() == 0 and not machine.drained()


def test_sessions_of_the_agent_have_no_rights_of_root(machine: Machine) -> None:
    machine.sudoers.write_text("ssm-user ALL=(ALL) NOPASSWD:ALL\n")
    assert machine.first_boot() == 0
    assert "NOPASSWD" not in machine.sudoers.read_text()
    assert machine.sudoers.stat().st_mode & 0o777 == 0o440
