"""Prepares a checkout: virtual environment, locked packages, Pulumi CLI. Run it through `make setup`.

Completed steps are skipped, so that an interrupted run can be repeated. Standard library only; this file must
also start on an old Python, to report that it is too old.
"""

import sys

if not ((3, 11) <= sys.version_info[:2] <= (3, 13)):
    sys.exit(
        "trainstack needs Python 3.11 to 3.13; this is %s. "
        "Install one and run: make PYTHON=python3.11 up" % sys.version.split()[0]
    )

import fcntl
import hashlib
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from infra.engine import golang, install

HOME = ROOT / ".trainstack"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
# Pulumi looks for the environment of dynamic resources from the folder of the program, and for that of the
# program itself from the folder of Pulumi.yaml: provider_plugin.go of its SDK passes the option on unchanged,
# and pulumi-resource-pulumi-python resolves it in its working directory.
PROGRAM_VENV = ROOT / "stacks" / VENV.name
LOCK = ROOT / "requirements.lock"
BOOTSTRAP_LOCK = ROOT / "requirements.bootstrap.lock"
# 5.9 GB of packages, 1.5 GB of Go modules and build cache, and room for the download of the largest wheel.
NEEDED_GB = 9
HEARTBEAT_S = 20

START = time.monotonic()


def notify(text: str) -> None:
    """Print one line of progress with the seconds since the start."""
    print(f"setup {time.monotonic() - START:5.0f}s  {text}", flush=True)


def run(command: list[str], why: str) -> None:
    """Run a step with a periodic progress line. Raises SetupError when it fails."""
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL) as step:
        while True:
            try:
                code = step.wait(HEARTBEAT_S)
                break
            except subprocess.TimeoutExpired:
                notify(f"still {why}")
    if code:
        raise golang.SetupError(f"{why} failed (exit {code}); see above.")


def fingerprint() -> str:
    """Digest of the inputs of the installed packages."""
    parts = [
        LOCK.read_bytes(),
        (ROOT / "pyproject.toml").read_bytes(),
        str(ROOT).encode(),
        sys.version.encode(),
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def check_disk() -> None:
    """Check the free disk space. Raises SetupError."""
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < NEEDED_GB:
        raise golang.SetupError(
            f"{free:.1f} GB are free below {ROOT}, set-up needs about {NEEDED_GB} GB (PyTorch alone takes "
            "4.7 GB). Free some space."
        )


def make_environment() -> None:
    """Create the virtual environment with uv and Pulumi's SDK, which install the rest."""
    if not PROGRAM_VENV.is_symlink():
        PROGRAM_VENV.symlink_to(Path("..", VENV.name))
    if PYTHON.exists():
        probe = subprocess.run([PYTHON, "-c", "import uv, pulumi"], check=False, capture_output=True)
        if probe.returncode == 0:
            return
    check_disk()
    notify("creating the virtual environment")
    run([sys.executable, "-m", "venv", "--clear", str(VENV)], "creating the virtual environment")
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    run([*pip, "-r", str(BOOTSTRAP_LOCK)], "installing uv and the Pulumi SDK")


def install_packages(stamp: Path) -> None:
    """Install exactly what requirements.lock names, hashes checked."""
    check_disk()
    notify("installing locked packages (PyTorch is the large one: 4.7 GB installed)")
    # Use the system's certificates, which may include a company's own authority.
    uv = [str(VENV / "bin" / "uv"), "--system-certs", "pip", "install", "--quiet", "--python", str(PYTHON)]
    run([*uv, "--require-hashes", "-r", str(LOCK)], "installing the locked packages")
    editable = ["--no-deps", "--no-build-isolation", "--config-settings", "editable_mode=compat", "-e", "."]
    run([*uv, *editable], "installing the trainstack command")
    stamp.write_text(fingerprint())


class CliBuild(threading.Thread):
    """Builds the CLI while the packages are downloaded: one needs the processor, the other the network."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.problem: golang.SetupError | None = None

    def run(self) -> None:
        """Build, and store an error for the main thread."""
        try:
            install.build_from_source(PYTHON, notify)
        except golang.SetupError as problem:
            self.problem = problem

    def wait(self) -> None:
        """Wait for the end, with a periodic progress line."""
        while self.is_alive():
            self.join(HEARTBEAT_S)
            if self.is_alive():
                notify("still building the Pulumi CLI")
        if self.problem:
            raise self.problem


def prepare() -> None:
    """All steps, each only when needed."""
    stamp = HOME / "packages.sha256"
    command = VENV / "bin" / "trainstack"
    installed = command.exists() and stamp.exists() and stamp.read_text() == fingerprint()
    if installed and (cli := install.current()):
        install.link(cli, VENV / "bin")
        return
    make_environment()
    cli = install.find() or install.install_official(PYTHON, notify)
    build = None if cli else CliBuild()
    if build:
        notify("building the Pulumi CLI from its Go module instead")
        build.start()
    if not installed:
        install_packages(stamp)
    if build:
        build.wait()
    cli = install.require()
    install.link(cli, VENV / "bin")
    notify(f"ready: Pulumi CLI {cli.version} ({cli.origin}), packages in .venv")


def main() -> int:
    """Prepare under a lock, so that two concurrent makes do not interfere."""
    HOME.mkdir(exist_ok=True)
    with (HOME / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            prepare()
        except golang.SetupError as problem:
            golang.stop_building()
            print(f"setup failed: {problem}\n{problem.fix}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            golang.stop_building()
            print("setup interrupted; run make again to continue", file=sys.stderr)
            return 130
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # A build thread that still waits for `go` after an interrupt must not hold the process.
    os._exit(status)
