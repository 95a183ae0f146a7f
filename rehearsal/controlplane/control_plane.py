"""Options of a control plane, and a handle on a running one."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from infra.places import PACKAGES
from rehearsal.controlplane.api import Access, KubernetesApi
from rehearsal.controlplane.processes import StartError
from rehearsal.controlplane.servers import ACCESS

ADMIN = "admin.kubeconfig"
_STOP_S = 20.0

Progress = Callable[[str], None]


@dataclass(frozen=True)
class ControlPlaneOptions:
    """A control plane to start in a folder of its own; previous files are removed unless `keep`."""

    home: Path
    addons: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Chart values of each enabled add-on of `rehearsal.controlplane.addons`, by name."""
    node_grace_s: int = 50
    """Seconds without a heartbeat after which a node is lost; 50 is Kubernetes' default."""
    controller_requests_per_s: int = 20
    """Client rate limit of each of Kubernetes' controllers; its default of 20 allows two Jobs a second."""
    keep: bool = False
    """Reuse the objects, authority and address of the previous control plane."""

    logins: str = ""
    """URL of the service that knows bearer tokens of clouds (a TokenReview webhook), if any."""

    def text(self) -> str:
        """The options as one line of JSON."""
        return json.dumps({**asdict(self), "home": str(self.home)})

    @classmethod
    def parse(cls, text: str) -> "ControlPlaneOptions":
        """Options from a line of JSON."""
        data = json.loads(text)
        return cls(**{**data, "home": Path(data["home"])})


@dataclass(frozen=True)
class ControlPlane:
    """A running control plane: files and administrator access."""

    home: Path
    access: Access
    process: "subprocess.Popen[str]"
    _requesting: threading.Lock = field(default_factory=threading.Lock)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.home / ADMIN

    def api(self) -> KubernetesApi:
        """A connection as administrator."""
        return KubernetesApi(self.access)

    def install(
        self,
        addon: str,
        values: Mapping[str, Any],
        *,
        skip_crds: bool = False,
        chart: Path | None = None,
        program: Path | None = None,
    ) -> None:
        """Install an add-on's chart and run its controller, replacing an earlier one. Raises StartError.

        `skip_crds`: without the chart's folder `crds`. `chart` and `program`: of another version.
        """
        other = {key: str(path) for key, path in (("chart", chart), ("program", program)) if path}
        self._request({"install": addon, "values": dict(values), "skip_crds": skip_crds, **other})

    def remove(self, addon: str) -> None:
        """End an add-on's controller and delete the objects of its chart. Raises StartError."""
        self._request({"remove": addon})

    def _request(self, message: dict[str, Any]) -> None:
        assert self.process.stdin and self.process.stdout
        with self._requesting:
            try:
                self.process.stdin.write(json.dumps(message) + "\n")
                self.process.stdin.flush()
            except OSError as error:
                raise StartError(f"the control plane has ended; its logs are in {self.home}") from error
            _await_ready(self.process, lambda text: None)


@contextmanager
def running(order: ControlPlaneOptions, progress: Progress = lambda text: None) -> Iterator[ControlPlane]:
    """A control plane for the duration of the context. Raises StartError with the reason."""
    with subprocess.Popen(
        [sys.executable, "-m", "rehearsal.controlplane"],
        cwd=PACKAGES, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdin and process.stdout
        try:
            process.stdin.write(order.text() + "\n")
            process.stdin.flush()
            _await_ready(process, progress)
            data = json.loads((order.home / ACCESS).read_text(encoding="utf-8"))
            authority, certificate, key = (Path(data[name]) for name in ("authority", "certificate", "key"))
            access = Access(data["server"], authority, certificate, key)
            yield ControlPlane(order.home, access, process)
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)
            process.kill()


def _await_ready(process: "subprocess.Popen[str]", progress: Progress) -> None:
    assert process.stdout
    for line in process.stdout:
        data = json.loads(line)
        if "error" in data:
            raise StartError(data["error"])
        if data.get("ready"):
            return
        progress(data["step"])
    raise StartError("the control plane ended before it was ready")
