"""The machine that deploys: its public address, the hosts it reaches, its installed programs."""

import ipaddress
import shutil
import socket
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trainstack.preflight.answers import Answer, State

WAY_IN = "way-in"
"""The check that the API of the cluster can be reached from here."""
_HTTPS = 443

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

    def reaches(self, host: str | None, fix: str) -> Answer:
        """The answer about the API of a cluster at `host`, which is empty or None where unknown."""
        if host and self.connects(host, _HTTPS):
            return Answer(WAY_IN, State.READY, f"{host} accepts connections from here")
        text = f"{host or 'the API'} does not accept connections from here"
        return Answer(WAY_IN, State.SHORT, text, fix)

    def will_reach(self, ranges: Iterable[str]) -> Answer:
        """The answer about the API of a cluster that does not exist yet, and will accept these ranges."""
        try:
            mine = ipaddress.ip_address(self.address())
        except (OSError, ValueError) as error:
            text = f"the public address of this machine is unknown: {error}"
            return Answer(WAY_IN, State.UNKNOWN, text, "Check that it is within layout.api_access.")
        if any(mine in ipaddress.IPv4Network(cidr) for cidr in ranges):
            return Answer(WAY_IN, State.READY, f"{mine} is within layout.api_access")
        fix = f"Add {mine}/32 to layout.api_access, or deploy from within it."
        return Answer(WAY_IN, State.SHORT, f"{mine}, this machine, is not within layout.api_access", fix)

    def has_login_program(self, check: str, program: str, fix: str) -> Answer:
        """The answer about a program by which the kubeconfig logs in to the cluster."""
        if found := self.finds(program):
            return Answer(check, State.READY, found)
        text = f"`{program}` is not installed; the deployment needs it to log in to the cluster"
        return Answer(check, State.SHORT, text, fix)
