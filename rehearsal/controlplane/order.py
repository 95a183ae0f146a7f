"""What a control plane is made with, and a handle on one that runs."""

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

from infra.engine.golang import ROOT
from rehearsal.controlplane.api import Access, KubernetesApi
from rehearsal.controlplane.processes import StartError
from rehearsal.controlplane.servers import ACCESS

ADMIN = "admin.kubeconfig"
_STOP_S = 20.0

Tell = Callable[[str], None]


@dataclass(frozen=True)
class ControlPlaneOptions:
    """A control plane to start in a folder of its own; what an earlier one left there is removed, or kept."""

    home: Path
    addons: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Values of the chart of each of `rehearsal.controlplane.addons` that is wanted, by its name."""
    node_grace_s: int = 50
    """Seconds without a heartbeat after which a node counts as lost; 50 is Kubernetes' own default."""
    controller_requests_per_s: int = 20
    """What each of Kubernetes' controllers may send; 20 is its own default, enough for two Jobs a second."""
    keep: bool = False
    """Go on with what an earlier one left: its objects, its authority, its address."""

    def text(self) -> str:
        """As one line of JSON."""
        return json.dumps({**asdict(self), "home": str(self.home)})

    @classmethod
    def parse(cls, text: str) -> "ControlPlaneOptions":
        """The order in a line of JSON."""
        said = json.loads(text)
        return cls(**{**said, "home": Path(said["home"])})


@dataclass(frozen=True)
class ControlPlane:
    """One that runs: its files, and the administrator's access."""

    home: Path
    access: Access
    process: "subprocess.Popen[str]"
    _asking: threading.Lock = field(default_factory=threading.Lock)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.home / ADMIN

    def api(self) -> KubernetesApi:
        """A connection as administrator."""
        return KubernetesApi(self.access)

    def install(self, addon: str, values: Mapping[str, Any]) -> None:
        """Install an add-on's chart and run its controller, in place of an earlier one. Raises StartError."""
        self._ask({"install": addon, "values": dict(values)})

    def remove(self, addon: str) -> None:
        """End an add-on's controller and delete what its chart brought. Raises StartError."""
        self._ask({"remove": addon})

    def _ask(self, message: dict[str, Any]) -> None:
        assert self.process.stdin and self.process.stdout
        with self._asking:
            try:
                self.process.stdin.write(json.dumps(message) + "\n")
                self.process.stdin.flush()
            except OSError as error:
                raise StartError(f"the control plane has ended; its logs are in {self.home}") from error
            _await_ready(self.process, lambda text: None)


@contextmanager
def running(order: ControlPlaneOptions, tell: Tell = lambda text: None) -> Iterator[ControlPlane]:
    """A control plane for as long as the context lasts. Raises StartError with the reason."""
    with subprocess.Popen(
        [sys.executable, "-m", "rehearsal.controlplane"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdin and process.stdout
        try:
            process.stdin.write(order.text() + "\n")
            process.stdin.flush()
            _await_ready(process, tell)
            said = json.loads((order.home / ACCESS).read_text(encoding="utf-8"))
            authority, certificate, key = (Path(said[name]) for name in ("authority", "certificate", "key"))
            access = Access(said["server"], authority, certificate, key)
            yield ControlPlane(order.home, access, process)
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)
            process.kill()


def _await_ready(process: "subprocess.Popen[str]", tell: Tell) -> None:
    assert process.stdout
    for line in process.stdout:
        said = json.loads(line)
        if "error" in said:
            raise StartError(said["error"])
        if said.get("ready"):
            return
        tell(said["step"])
    raise StartError("the control plane ended before it was ready")
