"""The binaries of a control plane: released ones of the right version where there are any, else built."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.engine.golang import ROOT, TOOLS, SetupError, go
from rehearsal.control import exclusive

HOME = ROOT / ".trainstack" / "control-plane"
FOLDER = HOME / "bin"
# Where setup-envtest and kubebuilder keep released binaries of the API server and etcd.
ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"
_VERSION_PACKAGE = "k8s.io/component-base/version"
_HEARTBEAT_S = 20.0
# Another make may be building the same.
_PATIENCE_S = 1800.0

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Binary:
    """One program: the folder below `tools/` that requires it, its Go module and package."""

    folder: str
    module: str
    package: str = ""
    released: bool = True
    """Whether a release has it under the same name."""

    @property
    def version(self) -> str:
        """The version that go.mod requires, such as v1.36.2."""
        text = (TOOLS / self.folder / "go.mod").read_text(encoding="utf-8")
        found = re.search(rf"^(?:require)?\s*{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        assert found, f"tools/{self.folder}/go.mod requires no {self.module}"
        return found[1]


_PLANE = "control-plane"
BINARIES = {
    "etcd": Binary("etcd", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": Binary(_PLANE, "k8s.io/kubernetes", "/cmd/kube-apiserver"),
    "kube-controller-manager": Binary(_PLANE, "k8s.io/kubernetes", "/cmd/kube-controller-manager"),
    "kube-scheduler": Binary(_PLANE, "k8s.io/kubernetes", "/cmd/kube-scheduler"),
    "kwok": Binary(_PLANE, "sigs.k8s.io/kwok", "/cmd/kwok"),
    "helm": Binary(_PLANE, "helm.sh/helm/v3", "/cmd/helm"),
    "kueue": Binary(_PLANE, "sigs.k8s.io/kueue", "/cmd/kueue", released=False),
    "jobset": Binary(_PLANE, "sigs.k8s.io/jobset", released=False),
}
# Folders of a module's source that are used as they are: charts, manifests.
_FILES = {
    "kueue": ("charts/kueue",),
    "jobset": ("charts/jobset",),
    "kwok": ("kustomize/stage/node/fast", "kustomize/stage/node/heartbeat-with-lease"),
}


def files_of(name: str) -> list[Path]:
    """The folders that are kept of the source of a binary."""
    return [HOME / "files" / name / Path(path).name for path in _FILES[name]]


def ready() -> dict[str, Path] | None:
    """Every binary by name, or None while one is missing or was built from other sources."""
    found = {name: _found(name) for name in BINARIES}
    kept = all(path.is_dir() for name in _FILES for path in files_of(name))
    return {name: path for name, path in found.items() if path} if kept and all(found.values()) else None


def require(tell: Tell = lambda text: None) -> dict[str, Path]:
    """Every binary by name, built now if it must be (9 minutes on 2 cores, once). Raises SetupError."""
    found = ready()
    if found is None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        with exclusive(HOME / "build.lock", time.monotonic() + _PATIENCE_S):
            for folder in dict.fromkeys(binary.folder for binary in BINARIES.values()):
                _build(folder, tell)
            for name in _FILES:
                _keep_files(name)
        found = ready()
        assert found is not None
    return found


def _found(name: str) -> Path | None:
    binary, built = BINARIES[name], FOLDER / name
    stamp = FOLDER / f"{binary.folder}.stamp"
    if os.access(built, os.X_OK) and stamp.exists() and stamp.read_text() == _fingerprint(binary.folder):
        return built
    places = os.pathsep.join(filter(None, (os.environ.get(ASSETS_VARIABLE), os.environ.get("PATH"))))
    released = shutil.which(name, path=places) if binary.released else None
    return Path(released) if released and _says(released, binary.version) else None


def _says(path: str, version: str) -> bool:
    """Whether a binary is exactly of this version."""
    flag = "version" if Path(path).name == "helm" else "--version"
    try:
        done = subprocess.run([path, flag], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return re.search(rf"\bv?{re.escape(version.removeprefix('v'))}\b", done.stdout + done.stderr) is not None


def _fingerprint(folder: str) -> str:
    """What the binaries of a folder are built from."""
    parts = [(TOOLS / folder / name).read_bytes() for name in ("go.mod", "go.sum")]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _build(folder: str, tell: Tell) -> None:
    """Build what is missing of a folder, all at once: what they share is compiled once."""
    missing = [name for name, binary in BINARIES.items() if binary.folder == folder and not _found(name)]
    if not missing:
        return
    tell(f"building {', '.join(missing)} (once)")
    drafts = FOLDER / f"{folder}.building"
    shutil.rmtree(drafts, ignore_errors=True)
    drafts.mkdir()
    packages = {BINARIES[name].module + BINARIES[name].package: name for name in missing}
    with _telling(tell, f"still building {folder}"):
        flags = f"-s -w {_version_flags()}"
        target = drafts if len(packages) > 1 else drafts / missing[0]  # else named after the package
        go(TOOLS / folder, "build", "-trimpath", "-ldflags", flags, "-o", str(target), *packages)
    for name in missing:
        (drafts / name).replace(FOLDER / name)
    drafts.rmdir()
    (FOLDER / f"{folder}.stamp").write_text(_fingerprint(folder), encoding="utf-8")


def _version_flags() -> str:
    # Kueue parses the version that the API server says, and stops when it says none.
    version = BINARIES["kube-apiserver"].version
    major, minor = version.removeprefix("v").split(".")[:2]
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(f"-X {_VERSION_PACKAGE}.{key}={value}" for key, value in values.items())


def _keep_files(name: str) -> None:
    binary = BINARIES[name]
    source = Path(go(TOOLS / binary.folder, "list", "-m", "-f", "{{.Dir}}", binary.module).strip())
    for path, target in zip(_FILES[name], files_of(name), strict=True):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source / path, target, copy_function=shutil.copyfile)
        for folder in (target, *(each for each in target.rglob("*") if each.is_dir())):
            folder.chmod(0o755)  # the cache of modules is read-only


@contextmanager
def _telling(tell: Tell, text: str) -> Iterator[None]:
    """Say now and then that it goes on."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(_HEARTBEAT_S):
            tell(text)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def main() -> int:
    """Build what is missing. A failure is no end: tests that need a binary and find it missing say so."""
    try:
        require(_print)
    except SetupError as error:
        _print(f"not available on this machine: {error}")
    return 0


def _print(text: str) -> None:
    sys.stdout.write(f"control plane: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
