"""The machine that deploys: its public address, the hosts it reaches, its installed programs."""

import shutil
import socket
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass

# A service of AWS that returns the address of the client.
_ADDRESS_SERVICE = "https://checkip.amazonaws.com"
_SECONDS = 5.0


def _address() -> str:
    with urllib.request.urlopen(_ADDRESS_SERVICE, timeout=_SECONDS) as response:
        return str(response.read(64).decode("ascii").strip())


def _connects(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_SECONDS):
            return True
    except OSError:
        return False


@dataclass(frozen=True)
class LocalMachine:
    """The machine that deploys; tests replace it."""

    address: Callable[[], str] = _address
    """Its public address. Raises OSError where that cannot be requested."""
    connects: Callable[[str, int], bool] = _connects
    """Return whether a host and port accept a TCP connection within 5 s."""
    finds: Callable[[str], str | None] = shutil.which
    """The path of an installed program."""
