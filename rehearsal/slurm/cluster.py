"""A running Slurm cluster on this machine: slurmctld, slurmdbd, MariaDB and a slurmd for each node.

Each node has a host name and a hosts file of its own (UTS and mount namespaces, as root or by a user
namespace), so job scripts that use `hostname` and `scontrol show hostnames` run as they would elsewhere. All
nodes share file system and network. Every process ends with the process that started it.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from infra.engine.golang import SetupError
from infra.slurm.tracking import PROLOG
from rehearsal.slurm import packages
from rehearsal.slurm.local_files import LocalNode, LocalPlace, local_files

QUICK: Final[Mapping[str, str]] = {
    "SlurmdTimeout": "10",
    "SlurmctldTimeout": "10",
    "MessageTimeout": "5",
    "KillWait": "2",
    "CompleteWait": "0",
    "MinJobAge": "300",
    "SchedulerParameters": "bf_interval=2,sched_min_interval=200000,batch_sched_delay=0",
    "PriorityCalcPeriod": "1",
    "HealthCheckInterval": "5",
    "HealthCheckNodeState": "ANY",
    "JobAcctGatherFrequency": "5",
}
"""Shorter times than the generated ones, so that tests need not wait."""
_MOST_NODES: Final = 64
_START_S: Final = 60.0


class LocalSlurm:
    """A cluster of generated files; a context manager."""

    def __init__(self, folder: Path, render: Callable[[str], Mapping[str, str]]) -> None:
        """`render` makes the files for a folder with the configuration."""
        self.folder = folder
        self._render = render
        self._root = packages.root()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: list[IO[bytes]] = []
        self.nodes: list[LocalNode] = []
        self._conf = folder / "etc/slurm.conf"
        self._place: LocalPlace
        self.user = packages.user()
        """The user of the daemons and of jobs."""

    def __enter__(self) -> "LocalSlurm":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- use ---------------------------------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands on the login node."""
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SBATCH"))}
        return {**plain, **environment(self.folder)}

    def run(self, *command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of a user or administrator; the exit code is the caller's to check."""
        return subprocess.run(
            command, cwd=folder or self.folder / "jobs", env=self.environment, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip

    def output(self, *command: str, folder: Path | None = None) -> str:
        """The output of a command that must succeed."""
        done = self.run(*command, folder=folder)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def until(self, wanted: Callable[[], bool], seconds: float = 30.0, *, what: str = "") -> None:
        """Wait until a condition holds. Raises SetupError after `seconds`."""
        end = time.monotonic() + seconds
        while not wanted():
            if time.monotonic() > end:
                raise SetupError(f"not within {seconds:g} s: {what}; logs in {self.folder / 'log'}")
            time.sleep(0.1)

    def state(self, job: str) -> str:
        """The short state of a job such as R; empty once it is out of the queue."""
        return self.run("squeue", "--noheader", "--jobs", job, "--format", "%t").stdout.strip()

    # ---- nodes -------------------------------------------------------------------------------------------

    def start_node(self, name: str) -> None:
        """Start the machine of a node."""
        spool = self.folder / "spool" / name
        spool.mkdir(parents=True, exist_ok=True)
        step = self._root / "usr/sbin/slurmstepd"
        slurmd = f"exec {self._root / 'usr/sbin/slurmd'} -D -N {name} -d {step}"
        host = f"hostname {name}; mount --bind {self.folder / 'etc/hosts'} /etc/hosts"
        space = ["unshare", "--uts", "--mount", "--propagation", "private"]
        if os.getuid() == 0:
            command = [*space, "bash", "-c", f"{host}; {slurmd}"]
        else:
            mine = (
                f"exec unshare --user --map-user={os.getuid()} --map-group={os.getgid()} bash -c '{slurmd}'"
            )
            command = [*space, "--map-root-user", "bash", "-c", f"{host}; {mine}"]
        self._start(name, command)

    def serve(self, name: str, command: Sequence[str], **environment: str) -> None:
        """Run a program of the nodes, unless it runs; it ends with the cluster."""
        process = self._processes.get(name)
        if process is None or process.poll() is not None:
            self._start(name, command, **environment)

    def kill_node(self, name: str) -> None:
        """Lose a node at once: slurmd, its steps and their processes."""
        process = self._processes.pop(name)
        space = _link(f"/proc/{process.pid}/ns/uts")
        for pid in self._pids():
            if _link(f"/proc/{pid}/ns/uts") == space:
                _kill(pid)
        process.wait(timeout=10)

    # ---- start and stop ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start all daemons, and wait until every node is idle. Raises SetupError."""
        for name in ("etc", "log", "run", "state", "spool", "dev", "jobs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        host = socket.gethostname().split(".")[0]
        place = LocalPlace(
            folder=self.folder,
            packages=self._root,
            plugins=self._root / packages.PLUGINS,
            host=host,
            user=self.user,
            port=free_ports(_MOST_NODES + 20),
            quick=QUICK,
        )
        self._place = place
        files, self.nodes = local_files(self._render(str(self.folder / "etc")), place)
        self._write(files)
        for number in range(max((one.gpus for one in self.nodes), default=0)):
            link = self.folder / "dev" / f"nvidia{number}"
            link.unlink(missing_ok=True)
            link.symlink_to("/dev/null")
        self._database(place)
        # The first run adds the cluster, without which slurmctld does not start; the second all else.
        script = str(self.folder / "etc/accounts.sh")
        self.run("bash", script)
        self._start("slurmctld", [str(self._root / "usr/sbin/slurmctld"), "-D", "-i"])
        self.until(lambda: "UP" in self.run("scontrol", "ping").stdout, what="slurmctld answers")
        self.output("bash", script)
        for one in self.nodes:
            self.start_node(one.name)
        self.until(self._idle, _START_S, what="nodes are idle")

    def rewrite(self, render: Callable[[str], Mapping[str, str]]) -> None:
        """Write files with other partitions, and let slurmctld read them. Raises SetupError."""
        self._render = render
        files, _ = local_files(render(str(self.folder / "etc")), self._place)
        self._write(files)
        done = self.run("scontrol", "reconfigure")
        if done.returncode:
            raise SetupError(f"scontrol reconfigure: {done.stdout}{done.stderr}")

    def stop(self) -> None:
        """End every process of the cluster."""
        for name in [*self._processes]:
            process = self._processes.pop(name)
            if name in ("slurmdbd", "mariadbd"):
                process.kill()
            else:
                process.terminate()
        for pid in self._pids():
            _kill(pid)
        for log in self._logs:
            log.close()
        self._logs = []

    def _idle(self) -> bool:
        states = self.run("sinfo", "--noheader", "--Node", "--format", "%N %t").stdout.splitlines()
        return sum(row.endswith(" idle") for row in set(states)) == len(self.nodes)

    def _write(self, files: Mapping[str, str]) -> None:
        files = {
            **files,
            # Lines of its output go into the environment of tasks: commands of Slurm are found there.
            "taskprolog.sh": f'#!/bin/sh\necho "export PATH={self._root / "usr/bin"}:$PATH"\n'
            f'echo "export SLURM_CONF={self._conf}"\n'
            # The stack's own program comes after that of this machine.
            + (f"sh {self.folder / 'etc' / PROLOG}\n" if PROLOG in files else ""),
        }
        for name, text in files.items():
            path = self.folder / "etc" / name
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755 if name.endswith(".sh") else 0o644)

    def _database(self, place: LocalPlace) -> None:
        usr, run = self._root / "usr", self.folder / "run"
        data = self.folder / "database"
        if not data.exists():
            shutil.copytree(self._root / "database", data)
        self._start(
            "mariadbd",
            [
                *(str(usr / "sbin/mariadbd"), "--no-defaults", f"--basedir={usr}", f"--datadir={data}"),
                *(f"--socket={run / 'db.sock'}", f"--pid-file={run / 'db.pid'}", f"--user={place.user}"),
                *(f"--lc-messages-dir={usr / 'share/mysql'}", "--skip-networking", "--skip-log-bin"),
                *(f"--character-sets-dir={usr / 'share/mysql/charsets'}", "--performance-schema=OFF"),
                *(f"--plugin-dir={usr / 'lib/mysql/plugin'}", "--innodb-buffer-pool-size=32M"),
                *("--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=0", "--key-buffer-size=1M"),
                *("--innodb-lock-wait-timeout=900", "--innodb-use-native-aio=0", "--max-connections=20"),
            ],
        )
        client = [str(usr / "bin/mariadb"), "--no-defaults", "-u", "root", "-S", str(run / "db.sock")]
        create = "create database if not exists slurm_acct"
        self.until(lambda: self.run(*client, "-e", create).returncode == 0, what="MariaDB answers")
        conf = self.folder / "etc/slurmdbd.conf"
        rows = {
            "AuthType": "auth/none", "DbdHost": place.host, "DbdAddr": "127.0.0.1",
            "DbdPort": str(place.port + 1), "SlurmUser": place.user, "PluginDir": str(place.plugins),
            "PidFile": str(run / "slurmdbd.pid"), "LogFile": str(self.folder / "log/slurmdbd.log"),
            "StorageType": "accounting_storage/mysql", "StorageHost": "localhost", "StorageUser": "root",
            "StorageLoc": "slurm_acct",
        }  # fmt: skip
        conf.write_text("".join(f"{key}={value}\n" for key, value in rows.items()), encoding="utf-8")
        conf.chmod(0o600)
        # slurmdbd.conf cannot name a socket; the variable of libmariadb can.
        self._start("slurmdbd", [str(usr / "sbin/slurmdbd"), "-D"], MYSQL_UNIX_PORT=str(run / "db.sock"))
        self.until(
            lambda: self.run("sacctmgr", "-n", "show", "cluster").returncode == 0, what="slurmdbd answers"
        )

    def _start(self, name: str, command: Sequence[str], **more: str) -> None:
        log = (self.folder / "log" / f"{name}.out").open("ab")
        self._logs.append(log)
        self._processes[name] = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            env={**self.environment, **more},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def _pids(self) -> list[int]:
        """Processes whose environment names this cluster: daemons, steps and tasks."""
        mark = f"SLURM_CONF={self._conf}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


def environment(folder: Path) -> dict[str, str]:
    """Variables by which commands reach the cluster of a folder. Raises SetupError without the packages."""
    usr = packages.root() / "usr"
    path = os.pathsep.join([str(usr / "bin"), str(usr / "sbin"), os.environ["PATH"]])
    return {"PATH": path, "SLURM_CONF": str(folder / "etc/slurm.conf")}


def answers(folder: Path) -> bool:
    """Return whether the controller of the cluster of a folder runs."""
    if not (folder / "etc/slurm.conf").is_file():
        return False
    settings = environment(folder)
    done = subprocess.run(
        [shutil.which("scontrol", path=settings["PATH"]) or "scontrol", "ping"],
        env={**os.environ, **settings}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "UP" in done.stdout


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that nothing uses on loopback."""
    for block in range(200):
        first = 20_000 + (os.getpid() * 100 + block * 100) % 12_000
        try:
            for port in (first, first + 1, first + 11, first + count - 1):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise SetupError("no free ports on 127.0.0.1")


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
