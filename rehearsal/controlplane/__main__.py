"""Parent of a control plane's processes: `python -m rehearsal.controlplane`, with options on stdin.

It prints one JSON line per step and `{"ready": true}`, then serves until stdin ends or a signal arrives. It
responds to `{"install": "kueue", "values": {...}}` and `{"remove": "kueue"}` with `{"ready": true}` or
`{"error": text}`. Its child processes always end with it.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from infra.engine.golang import SetupError
from rehearsal.control import ControlError, exclusive
from rehearsal.controlplane import binaries
from rehearsal.controlplane.addons import ADDONS, Order, remove_addon, start_addon
from rehearsal.controlplane.api import Access, ApiError
from rehearsal.controlplane.certificates import Authority
from rehearsal.controlplane.control_plane import ADMIN, ControlPlaneOptions
from rehearsal.controlplane.nodes import start_kwok
from rehearsal.controlplane.processes import Processes, StartContext, StartError
from rehearsal.controlplane.servers import ACCESS, start_servers, write_kubeconfig

_TRIES = 3
_PATIENCE_S = 30.0
_TAKEN = "address already in use"


def main() -> int:
    """Read the options, start all processes, serve, end them."""
    order = ControlPlaneOptions.parse(sys.stdin.readline())
    stopped, wake = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os.write(wake, b"x"))
    try:
        with _alone(order):
            return _serve(order, stopped)
    except (StartError, SetupError, ControlError) as error:
        _print(error=str(error))
        return 1


@contextlib.contextmanager
def _alone(order: ControlPlaneOptions) -> Iterator[None]:
    """Wait until an earlier control plane of this folder has ended."""
    order.home.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(order.home.with_name(f"{order.home.name}.lock"), time.monotonic() + _PATIENCE_S):
        yield


def _serve(order: ControlPlaneOptions, stopped: int) -> int:
    """Start all processes and handle requests until stdin ends; returns the exit code."""
    site, access = _start(order)
    try:
        _print(ready=True)
        while stopped not in (ready := select.select([sys.stdin.fileno(), stopped], [], [], 1.0)[0]):
            if ready:
                line = sys.stdin.readline()
                if not line:
                    break
                _obey(json.loads(line), site, access)
            name = site.processes.ended()
            if name:
                _print(error=f"{name} ended by itself; see {order.home / name}.log")
                return 1
    finally:
        site.processes.stop()
    return 0


def _obey(message: dict[str, Any], site: StartContext, access: Access) -> None:
    try:
        if "install" in message:
            start_addon(ADDONS[message["install"]], Order.parse(message), access, site)
        else:
            remove_addon(ADDONS[message["remove"]], access, site)
    except (StartError, ApiError) as error:
        _print(error=str(error))
    except requests.ConnectionError:
        _print(error=f"{site.processes.ended() or 'the API server'} ended during the request")
    else:
        _print(ready=True)


def _start(order: ControlPlaneOptions) -> tuple[StartContext, Access]:
    """Start all processes, again with other ports when one was taken meanwhile."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(_TakenError):
            return _try(order)
    return _try(order)


class _TakenError(StartError):
    pass


def _try(order: ControlPlaneOptions) -> tuple[StartContext, Access]:
    if not order.keep:
        shutil.rmtree(order.home, ignore_errors=True)
    order.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    processes = Processes(order.home)
    try:
        return _start_all(order, processes)
    except BaseException as error:
        processes.stop()
        if isinstance(error, StartError) and _TAKEN in str(error):
            raise _TakenError(str(error)) from error
        raise


def _start_all(order: ControlPlaneOptions, processes: Processes) -> tuple[StartContext, Access]:
    found = binaries.require(lambda text: _print(step=text))
    site = StartContext(order.home, processes, found, Authority(order.home / "certificates"))
    _print(step="starting etcd and the API server")
    access = start_servers(
        site,
        node_grace_s=order.node_grace_s,
        controller_requests_per_s=order.controller_requests_per_s,
        logins=order.logins,
    )
    admin = write_kubeconfig(order.home / ADMIN, access)
    start_kwok(site, admin)
    for name, addon in ADDONS.items():
        if name in order.addons:
            _print(step=f"starting {name}")
            start_addon(addon, Order(order.addons[name]), access, site)
    _remember(order.home, access)
    return site, access


def _remember(home: Path, access: Access) -> None:
    files = {"authority": access.authority, "certificate": access.certificate, "key": access.key}
    files_of_access = {"server": access.server, **{name: str(path) for name, path in files.items()}}
    (home / ACCESS).write_text(json.dumps(files_of_access), encoding="utf-8")


def _print(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
