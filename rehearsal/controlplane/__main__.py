"""The parent of a control plane's processes: `python -m rehearsal.controlplane`, an order on its input.

It prints one line of JSON a step and `{"ready": true}`, then serves until its input ends or a signal comes.
All its children end with it, however it ends.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import sys
from pathlib import Path

from infra.engine.golang import SetupError
from rehearsal.controlplane import binaries
from rehearsal.controlplane.addons import ADDONS, start_addon
from rehearsal.controlplane.api import Access
from rehearsal.controlplane.certificates import Authority
from rehearsal.controlplane.nodes import start_kwok
from rehearsal.controlplane.order import ADMIN, Order
from rehearsal.controlplane.processes import Processes, Site, StartError
from rehearsal.controlplane.servers import start_servers, write_kubeconfig

_TRIES = 3
_TAKEN = "address already in use"


def main() -> int:
    """Read the order, start everything, serve, end everything."""
    order = Order.parse(sys.stdin.readline())
    stopped, wake = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os.write(wake, b"x"))
    try:
        processes = _start(order)
    except (StartError, SetupError) as error:
        _say(error=str(error))
        return 1
    try:
        _say(ready=True)
        while not select.select([sys.stdin.fileno(), stopped], [], [], 1.0)[0]:
            name = processes.ended()
            if name:
                _say(error=f"{name} ended by itself; see {order.home / name}.log")
                return 1
    finally:
        processes.stop()
    return 0


def _start(order: Order) -> Processes:
    """Everything, again with other ports when one was taken in the meantime."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(_TakenError):
            return _try(order)
    return _try(order)


class _TakenError(StartError):
    pass


def _try(order: Order) -> Processes:
    shutil.rmtree(order.home, ignore_errors=True)
    order.home.mkdir(parents=True, mode=0o700)
    processes = Processes(order.home)
    try:
        _start_all(order, processes)
    except BaseException as error:
        processes.stop()
        if isinstance(error, StartError) and _TAKEN in str(error):
            raise _TakenError(str(error)) from error
        raise
    return processes


def _start_all(order: Order, processes: Processes) -> None:
    found = binaries.require(lambda text: _say(step=text))
    site = Site(order.home, processes, found, Authority(order.home / "certificates"))
    _say(step="starting etcd and the API server")
    access = start_servers(site, node_grace_s=order.node_grace_s)
    admin = write_kubeconfig(order.home / ADMIN, access)
    start_kwok(site, admin)
    for name, values in (("jobset", order.jobset), ("kueue", order.kueue)):
        if values is not None:
            _say(step=f"starting {name}")
            start_addon(ADDONS[name], values, access, site)
    _remember(order.home, access)


def _remember(home: Path, access: Access) -> None:
    files = {"authority": access.authority, "certificate": access.certificate, "key": access.key}
    said = {"server": access.server, **{name: str(path) for name, path in files.items()}}
    (home / "access.json").write_text(json.dumps(said), encoding="utf-8")


def _say(**words: object) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
