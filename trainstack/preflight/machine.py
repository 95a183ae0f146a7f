"""What the machine that deploys can do: its address on the internet, what it reaches, what is installed."""

import shutil
import socket
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass

# AWS's own service, which answers with the address that a request came from.
_WHO_ASKS = "https://checkip.amazonaws.com"
_SECONDS = 5.0


def _address() -> str:
    with urllib.request.urlopen(_WHO_ASKS, timeout=_SECONDS) as answer:
        return str(answer.read(64).decode("ascii").strip())


def _connects(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_SECONDS):
            return True
    except OSError:
        return False


@dataclass(frozen=True)
class Machine:
    """The machine that deploys; a test gives another one."""

    address: Callable[[], str] = _address
    """The address under which it appears on the internet. Raises OSError where it cannot be asked."""
    connects: Callable[[str, int], bool] = _connects
    """Whether a TCP connection to a host and port is accepted within 5 s."""
    finds: Callable[[str], str | None] = shutil.which
    """Where a program is installed."""
