"""Slurm 22.05 and MariaDB from Debian's packages, unpacked once below `.trainstack/slurm`.

Run as a module, it fetches them (19 MB, 190 MB unpacked): `make binaries`. Nothing is installed.
"""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

from infra.engine.golang import SetupError
from infra.places import USER

HOME = USER / "slurm"
# Debian 12 (bookworm), slurm-wlm 22.05.8-4. patchelf is used once, below.
PACKAGES = (
    *("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "slurm-wlm-mysql-plugin", "slurmdbd"),
    *("libmunge2", "libhwloc15", "libhttp-parser2.9", "liblua5.1-0", "patchelf", "mariadb-server"),
    *("mariadb-server-core", "mariadb-client-core", "mariadb-client", "libmariadb3", "libaio1", "liburing2"),
)
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
PLUGINS = f"{_LIBRARIES}/slurm-wlm"
_READY = ".ready-1"
_ELF = b"\x7fELF"


def root() -> Path:
    """The folder of the unpacked packages. Raises SetupError where they are not fetched."""
    found = HOME / "root"
    if not (found / _READY).is_file():
        raise SetupError("Slurm is not fetched: make binaries")
    return found


def user() -> str:
    """The user of this process, also of the daemons that it starts."""
    return pwd.getpwuid(os.getuid()).pw_name


def fetch() -> Path:
    """Fetch and unpack the packages, once. Raises SetupError where that cannot be done."""
    found = HOME / "root"
    if (found / _READY).is_file():
        return found
    for tool in ("apt-get", "dpkg", "unshare", "setpriv"):
        if shutil.which(tool) is None:
            raise SetupError(f"a real Slurm needs {tool}, which Debian 12 has")
    draft, packed = HOME / f"draft-{os.getpid()}", HOME / f"packages-{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    packed.mkdir(exist_ok=True)
    try:
        _run(["apt-get", "download", "--quiet", *PACKAGES], packed)
        for one in sorted(packed.glob("*.deb")):
            _run(["dpkg", "-x", str(one), str(draft)], packed)
        _relink(draft)
        _database(draft)
        (draft / _READY).touch()
        if not found.exists():
            # No path of the draft is in it: those of libraries are relative to their file.
            draft.rename(found)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(packed, ignore_errors=True)
    return found


def _relink(place: Path) -> None:
    """Let programs find their libraries, and give the daemons their own names.

    LD_LIBRARY_PATH would be copied into jobs by sbatch. Slurm compares its program's name with
    "slurmctld,slurmd" before it keeps `Gres=` of node lines (src/common/node_conf.c, `run_in_daemon`), and
    Debian's names end in -wlm.
    """
    patchelf = str(place / "usr/bin/patchelf")
    programs = [one for folder in ("usr/bin", "usr/sbin") for one in (place / folder).iterdir()]
    for path in programs:
        if path.name != "patchelf" and _is_elf(path):
            rpath = "$ORIGIN/../lib/x86_64-linux-gnu/slurm-wlm:$ORIGIN/../lib/x86_64-linux-gnu"
            _run([patchelf, "--force-rpath", "--set-rpath", rpath, str(path)], place)
    for path in (place / PLUGINS).glob("*.so"):
        if path.name.startswith("mpi_pmix"):  # wants a library that is not unpacked
            path.unlink()
        elif _is_elf(path):
            _run([patchelf, "--force-rpath", "--set-rpath", "$ORIGIN:$ORIGIN/..", str(path)], place)
    for name in ("slurmctld", "slurmd", "slurmstepd"):
        link = place / "usr/sbin" / name
        link.unlink(missing_ok=True)
        link.symlink_to(f"{name}-wlm")


def _database(place: Path) -> None:
    """An empty data base, which every cluster copies: MariaDB takes seconds to make one."""
    share = place / "usr/share/mysql"
    options = [
        *("--no-defaults", f"--basedir={place / 'usr'}", f"--datadir={place / 'database'}"),
        *("--auth-root-authentication-method=normal", "--skip-test-db", f"--lc-messages-dir={share}"),
        *("--innodb-log-file-size=8M", "--innodb-use-native-aio=0", "--skip-log-bin"),
        f"--user={user()}",
    ]
    _run([str(place / "usr/bin/mariadb-install-db"), *options], place)


def _is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == _ELF


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise SetupError(f"{' '.join(command[:2])} failed: {''.join(last)}")


if __name__ == "__main__":
    try:
        fetch()
    except SetupError as error:
        print(f"tests with a real Slurm are skipped: {error}")  # noqa: T201
        sys.exit(0)
