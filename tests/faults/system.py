"""Linux facilities of the laboratory: commands, control groups, and the clean-up after dead laboratories."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

PREFIX = "tslab"
CGROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "blkio", "freezer")
HOMES = Path("/dev/shm")
TOOLS = ("ip", "tc", "unshare", "nsenter", "losetup", "mkfs.ext4", "mount", "umount", "hostname", "setpriv")
# Words before a command that the kernel is to kill when the thread that started it ends.
MORTAL = ("setpriv", "--pdeathsig", "KILL")


class LabError(RuntimeError):
    """The laboratory itself does not work; nothing was learnt about the product."""


def missing() -> str | None:
    """Why no laboratory can stand here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    lacking = [f"the command {tool}" for tool in TOOLS if shutil.which(tool) is None]
    lacking += [
        f"the cgroup v1 controller {name}"
        for name in CONTROLLERS
        if not (CGROUPS / name / "cgroup.procs").exists()
    ]
    if not lacking and subprocess.run(["unshare", "-n", "-u", "true"], check=False).returncode:
        lacking.append("the right to make namespaces")
    return "needs " + ", ".join(lacking) if lacking else None


def command(*argv: str, text: str | None = None, check: bool = True) -> str:
    """Run a command to its end and return its stdout; LabError with its stderr if it fails."""
    done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=60, check=False)
    if check and done.returncode != 0:
        raise LabError(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr.strip()[:2000]}")
    return done.stdout


def started_at(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot (`/proc/PID/stat`, field 22); None if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[19])


def state_of(pid: int) -> str | None:
    """State letter of a process (`T` is stopped, `Z` a zombie); None if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


class Group:
    """One folder in each of the cgroup v1 hierarchies, with the processes of one node in it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def folder(self, controller: str) -> Path:
        """Where the controller keeps this group."""
        return CGROUPS / controller / self.name

    def make(self) -> None:
        """Create the group in every hierarchy."""
        for controller in CONTROLLERS:
            self.folder(controller).mkdir(parents=True, exist_ok=True)

    def write(self, controller: str, file: str, value: str) -> None:
        """Set one knob of the group."""
        (self.folder(controller) / file).write_text(value)

    def read(self, controller: str, file: str) -> str:
        """Read one knob or counter of the group."""
        return (self.folder(controller) / file).read_text()

    def counter(self, controller: str, file: str, name: str) -> int:
        """One `name value` line of a counter file."""
        for line in self.read(controller, file).splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
        raise LabError(f"{self.folder(controller) / file} has no counter {name}")

    def pids(self) -> list[int]:
        """Live processes in the group and the groups below it, zombies excepted."""
        found = set[int]()
        for procs in self.folder("cpu").rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                found.update(int(line) for line in procs.read_text().split())
        return sorted(pid for pid in found if state_of(pid) not in (None, "Z"))

    def kill(self, patience_s: float = 5.0) -> list[int]:
        """SIGKILL all processes of the group, frozen ones included; returns survivors."""
        for state in self.folder("freezer").rglob("freezer.state"):
            with contextlib.suppress(OSError):
                state.write_text("THAWED")
        deadline = time.monotonic() + patience_s
        while (left := self.pids()) and time.monotonic() < deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        return left

    def remove(self) -> None:
        """Kill what is in the group and remove it from every hierarchy."""
        self.kill()
        for controller in CONTROLLERS:
            top = self.folder(controller)
            for path in sorted(top.rglob("*/"), reverse=True) if top.exists() else ():
                _remove_group(path)
            _remove_group(top)


def _remove_group(path: Path) -> None:
    """Remove one cgroup; a process that has just died may hold it for a moment."""
    for _ in range(100):
        try:
            path.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
        else:
            return


def entering(groups: Sequence[Path]) -> list[str]:
    """Command words that put themselves into control groups and then become what follows them."""
    script = 'n="$1"; shift; while [ "$n" -gt 0 ]; do echo $$ > "$1"; shift; n=$((n-1)); done; exec "$@"'
    procs = [str(path / "cgroup.procs") for path in groups]
    return ["sh", "-c", script, "sh", str(len(procs)), *procs]


def unused_name() -> str:
    """A laboratory's name: its owner's pid and start time, so that a recycled pid owns nothing."""
    pid = os.getpid()
    return f"{PREFIX}-{pid}-{started_at(pid)}-{time.monotonic_ns() % 10**9}"


def owner_lives(name: str) -> bool:
    """Whether the process that a laboratory's name carries still runs."""
    parts = name.split("-")
    try:
        pid, start = int(parts[1]), int(parts[2])
    except (IndexError, ValueError):
        return False
    return started_at(pid) == start and state_of(pid) != "Z"


def loops_of(home: Path) -> list[str]:
    """Loop devices whose backing file lies below a folder."""
    found = []
    for line in command(
        "losetup", "--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE"
    ).splitlines():
        device, _, file = line.partition(" ")
        if file.startswith(f"{home}/"):
            found.append(device)
    return found


def demolish(name: str) -> None:
    """Remove all that a laboratory of this name may have left: processes, groups, mounts, devices, files.

    Namespaces, with their links, qdiscs and private mounts, end with the last process in them.
    """
    Group(name).remove()
    home = HOMES / name
    for mount in reversed(_mounts_below(home)):
        command("umount", "--lazy", mount, check=False)
    for device in loops_of(home) if shutil.which("losetup") else []:
        command("losetup", "--detach", device, check=False)
    shutil.rmtree(home, ignore_errors=True)


def sweep() -> list[str]:
    """Remove what the laboratories of dead processes left behind; returns their names."""
    places = [HOMES, *(CGROUPS / controller for controller in CONTROLLERS)]
    names = {path.name for place in places if place.exists() for path in place.glob(f"{PREFIX}-*")}
    dead = sorted(name for name in names if not owner_lives(name))
    for name in dead:
        demolish(name)
    return dead


def _mounts_below(home: Path) -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [line.split()[1] for line in lines if f"{line.split()[1]}/".startswith(f"{home}/")]
