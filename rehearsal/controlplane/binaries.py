"""Binaries of a control plane: released ones of the required version, else built from source.

Beside them are files of Go modules that are used unchanged: charts, manifests.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.engine.golang import TOOLS, SetupError, build, go
from infra.places import CHECKOUT, USER
from rehearsal.control import exclusive

HOME = USER / "control-plane"
FOLDER = HOME / "bin"
# Folder in which setup-envtest and kubebuilder keep released binaries of the API server and etcd.
ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"
_VERSION_PACKAGE = "k8s.io/component-base/version"
_HEARTBEAT_S = 20.0
# Another `make` may build the same binaries.
_PATIENCE_S = 1800.0

Progress = Callable[[str], None]


@dataclass(frozen=True)
class RequiredModule:
    """A Go module, and the folder below `tools/` whose go.mod requires it."""

    folder: str
    module: str

    @property
    def version(self) -> str:
        """The version that go.mod requires, such as v1.36.2."""
        text = (TOOLS / self.folder / "go.mod").read_text(encoding="utf-8")
        found = re.search(rf"^(?:require)?\s*{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        assert found, f"tools/{self.folder}/go.mod requires no {self.module}"
        return found[1]


@dataclass(frozen=True)
class Binary(RequiredModule):
    """One program of a module."""

    package: str = ""
    released: bool = True
    """True when releases contain it under the same name."""
    tags: str = ""
    """Go build constraints that exclude unused parts."""


@dataclass(frozen=True)
class ModuleFiles(RequiredModule):
    """Folders of a module's source that are used unchanged: charts, manifests, schemas."""

    paths: tuple[str, ...]


_PLANE = "control-plane"
# Kueue's visibility API keeps its certificate in a folder below `/` that no setting changes
# (kubernetes-sigs/kueue v0.19.2 pkg/visibility/server.go, `certDir`): moved to the working directory.
_VISIBILITY = "-X sigs.k8s.io/kueue/pkg/visibility.certDir=visibility"
_LINKED = {_PLANE: _VISIBILITY, "kueue-before": _VISIBILITY}
_TRAINER, _TRAINER_MODULE = "trainer", "github.com/kubeflow/trainer/v2"
BINARIES = {
    "etcd": Binary("etcd", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": Binary(_PLANE, "k8s.io/kubernetes", "/cmd/kube-apiserver"),
    "kube-controller-manager": Binary(_PLANE, "k8s.io/kubernetes", "/cmd/kube-controller-manager"),
    "kube-scheduler": Binary(_PLANE, "k8s.io/kubernetes", "/cmd/kube-scheduler"),
    "kwok": Binary(_PLANE, "sigs.k8s.io/kwok", "/cmd/kwok"),
    "helm": Binary(_PLANE, "helm.sh/helm/v3", "/cmd/helm"),
    "kueue": Binary(_PLANE, "sigs.k8s.io/kueue", "/cmd/kueue", released=False),
    "jobset": Binary(_PLANE, "sigs.k8s.io/jobset", released=False),
    "kubeflow-trainer": Binary(_TRAINER, _TRAINER_MODULE, "/cmd/trainer-controller-manager", released=False),
}
# Tools that check alert rules and routes and run queries in tests; not part of a control plane. The tag
# excludes service discovery of all clouds (prometheus plugins/*.go), with their SDKs.
_PROMETHEUS, _SMALLER = "github.com/prometheus/prometheus", "remove_all_sd"
CHECKERS = {
    "promtool": Binary("prometheus", _PROMETHEUS, "/cmd/promtool", tags=_SMALLER),
    "amtool": Binary("prometheus", "github.com/prometheus/alertmanager", "/cmd/amtool", tags=_SMALLER),
    "prometheus": Binary("prometheus", _PROMETHEUS, "/cmd/prometheus", tags=_SMALLER),
}
# Other releases of the controllers, from and to which tests upgrade; their charts have the same keys.
OTHERS = {
    "kueue-before": Binary("kueue-before", "sigs.k8s.io/kueue", "/cmd/kueue", released=False),
    "jobset-before": Binary("jobset-before", "sigs.k8s.io/jobset", released=False),
    "kubeflow-trainer-next": Binary(
        "trainer-next", _TRAINER_MODULE, "/cmd/trainer-controller-manager", released=False
    ),
}
_ALL = {**BINARIES, **CHECKERS, **OTHERS}
FILES = {
    "kueue": ModuleFiles(_PLANE, "sigs.k8s.io/kueue", ("charts/kueue",)),
    "jobset": ModuleFiles(_PLANE, "sigs.k8s.io/jobset", ("charts/jobset",)),
    "kubeflow-trainer": ModuleFiles(_TRAINER, _TRAINER_MODULE, ("charts/kubeflow-trainer",)),
    "kueue-before": ModuleFiles("kueue-before", "sigs.k8s.io/kueue", ("charts/kueue",)),
    "jobset-before": ModuleFiles("jobset-before", "sigs.k8s.io/jobset", ("charts/jobset",)),
    "kubeflow-trainer-next": ModuleFiles("trainer-next", _TRAINER_MODULE, ("charts/kubeflow-trainer",)),
    "kwok": ModuleFiles(
        _PLANE, "sigs.k8s.io/kwok", ("kustomize/stage/node/fast", "kustomize/stage/node/heartbeat-with-lease")
    ),
    "nvidia-device-plugin": ModuleFiles(
        "charts", "github.com/NVIDIA/k8s-device-plugin", ("deployments/helm/nvidia-device-plugin",)
    ),
    # Only its charts: programs of it need a module that is fetched with them.
    **{
        name: ModuleFiles("slurm-operator", "github.com/SlinkyProject/slurm-operator", (f"helm/{name}",))
        for name in ("slurm-operator", "slurm-operator-crds")
    },
    "cyclonedx": ModuleFiles("schemas", "github.com/CycloneDX/cyclonedx-go", ("schema",)),
    "sarif": ModuleFiles("schemas", "github.com/owenrumney/go-sarif/v3", ("pkg/report/v210/sarif",)),
}


def files_of(name: str) -> list[Path]:
    """The kept folders of a module's source."""
    return [HOME / "files" / name / Path(path).name for path in FILES[name].paths]


def kept(name: str) -> bool:
    """Return whether a module's folders are present in the version of go.mod."""
    return _current(FILES[name].folder) and all(path.is_dir() for path in files_of(name))


def ready() -> dict[str, Path] | None:
    """All binaries by name, or None when one is missing or was built from other sources.

    Raises SetupError without a checkout, which has the modules that they are built from.
    """
    if CHECKOUT is None:
        rule = (
            "the real control plane is built from a checkout of trainstack, and this is an installed package"
        )
        raise SetupError(rule, "Leave out --cluster real, or use a checkout (`make binaries`).")
    found = {name: _found(name) for name in BINARIES}
    complete = all(found.values()) and all(kept(name) for name in FILES if name in BINARIES)
    return {name: path for name, path in found.items() if path} if complete else None


def require(progress: Progress = lambda text: None) -> dict[str, Path]:
    """All binaries by name; builds missing ones (9 minutes on 2 cores, once). Raises SetupError."""
    found = ready()
    if found is None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        with exclusive(HOME / "build.lock", time.monotonic() + _PATIENCE_S):
            for folder in dict.fromkeys(binary.folder for binary in BINARIES.values()):
                _build(folder, progress)
            _keep(name for name in FILES if name in BINARIES)
        found = ready()
        assert found is not None
    return found


def checkers() -> dict[str, Path] | None:
    """The binaries of `CHECKERS` by name, or None when one is missing or was built from other sources."""
    found = {name: path for name in CHECKERS if (path := _found(name))}
    return found if len(found) == len(CHECKERS) else None


def require_checkers(progress: Progress = lambda text: None) -> dict[str, Path]:
    """The binaries of `CHECKERS`; builds missing ones (4 minutes on 2 cores, once). Raises SetupError."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with exclusive(HOME / "build.lock", time.monotonic() + _PATIENCE_S):
        _build("prometheus", progress)
    found = checkers()
    assert found is not None
    return found


def other(name: str) -> tuple[Path, Path] | None:
    """The program and the chart of one of `OTHERS`; None when they are missing or of other sources."""
    found = _found(name)
    return (found, files_of(name)[0]) if found and kept(name) else None


def require_others(progress: Progress = lambda text: None) -> None:
    """Build the binaries of `OTHERS` (12 minutes on 2 cores, once). Raises SetupError."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with exclusive(HOME / "build.lock", time.monotonic() + _PATIENCE_S):
        for name, binary in OTHERS.items():
            _build(binary.folder, progress)
            _keep([name] if not kept(name) else [])


def require_charts() -> None:
    """Copy charts and schemas whose binaries are not part of the control plane. Raises SetupError."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with exclusive(HOME / "build.lock", time.monotonic() + _PATIENCE_S):
        _keep(name for name in FILES if name not in OTHERS and not kept(name))


def _found(name: str) -> Path | None:
    binary, built = _ALL[name], FOLDER / name
    if os.access(built, os.X_OK) and _current(binary.folder):
        return built
    places = os.pathsep.join(filter(None, (os.environ.get(ASSETS_VARIABLE), os.environ.get("PATH"))))
    released = shutil.which(name, path=places) if binary.released else None
    return Path(released) if released and _says(released, binary.version) else None


def _says(path: str, version: str) -> bool:
    flag = "version" if Path(path).name == "helm" else "--version"
    try:
        done = subprocess.run([path, flag], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return re.search(rf"\bv?{re.escape(version.removeprefix('v'))}\b", done.stdout + done.stderr) is not None


def _current(folder: str) -> bool:
    """Return whether the existing files match the requirements of a folder's go.mod."""
    stamp = _stamp(folder)
    return stamp.exists() and stamp.read_text(encoding="utf-8") == _fingerprint(folder)


def _stamp(folder: str) -> Path:
    return FOLDER / f"{folder}.stamp"


def _fingerprint(folder: str) -> str:
    parts = [(TOOLS / folder / name).read_bytes() for name in ("go.mod", "go.sum")]
    parts += [_LINKED[folder].encode()] if folder in _LINKED else []
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _build(folder: str, progress: Progress) -> None:
    """Build the missing binaries of a folder together, so that shared packages are compiled once."""
    missing = [name for name, binary in _ALL.items() if binary.folder == folder and not _found(name)]
    if not missing:
        return
    progress(f"building {', '.join(missing)} (once)")
    drafts = FOLDER / f"{folder}.building"
    shutil.rmtree(drafts, ignore_errors=True)
    drafts.mkdir()
    packages = {_ALL[name].module + _ALL[name].package: name for name in missing}
    tags = _ALL[missing[0]].tags
    with _repeated_progress(progress, f"still building {folder}"):
        target = (
            drafts if len(packages) > 1 else drafts / missing[0]
        )  # go build names a single binary by its package otherwise
        build(TOOLS / folder, target, _link_flags(folder), *packages, tags=tags)
    for name in missing:
        (drafts / name).replace(FOLDER / name)
    drafts.rmdir()
    _stamp(folder).write_text(_fingerprint(folder), encoding="utf-8")


def _link_flags(folder: str) -> str:
    # Kueue parses the version of the API server, and exits without one.
    version = BINARIES["kube-apiserver"].version
    major, minor = version.removeprefix("v").split(".")[:2]
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    flags = [f"-X {_VERSION_PACKAGE}.{key}={value}" for key, value in values.items()]
    return " ".join([*flags, *([_LINKED[folder]] if folder in _LINKED else [])])


def _keep(names: Iterable[str]) -> None:
    chosen = {name: FILES[name] for name in names}
    for name, files in chosen.items():
        download = go(TOOLS / files.folder, "mod", "download", "-json", files.module)
        source = Path(json.loads(download)["Dir"])
        for path, target in zip(files.paths, files_of(name), strict=True):
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source / path, target, copy_function=shutil.copyfile)
            for each in (target, *(path for path in target.rglob("*") if path.is_dir())):
                each.chmod(0o755)  # the cache of modules is read-only
            _without_subcharts(target)
    for folder in {files.folder for files in chosen.values()}:
        _stamp(folder).write_text(_fingerprint(folder), encoding="utf-8")


def _without_subcharts(chart: Path) -> None:
    """Remove dependencies of a chart: its source does not have them, and Helm requires them."""
    definition = chart / "Chart.yaml"
    if definition.exists() and not (chart / "charts").exists():
        text = definition.read_text(encoding="utf-8")
        definition.write_text(
            re.sub(r"^dependencies:\n(?:[- ].*\n)*", "", text, flags=re.M), encoding="utf-8"
        )


@contextmanager
def _repeated_progress(progress: Progress, text: str) -> Iterator[None]:
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(_HEARTBEAT_S):
            progress(text)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def main() -> int:
    """Make missing files; with `--others` those of other releases, too.

    Failures are printed, not raised: tests report what is missing.
    """
    try:
        require(_print)
        require_charts()
        require_checkers(_print)
        if sys.argv[1:] == ["--others"]:
            require_others(_print)
    except SetupError as error:
        _print(f"not available on this machine: {error}")
    return 0


def _print(text: str) -> None:
    sys.stdout.write(f"control plane: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
