"""Where the programs of a rehearsal's user find the emulated services of AWS: a port that a home keeps.

It is known before the daemon runs, because an engine hands its environment to its programs once.
Only the standard library is imported here.
"""

import hashlib
import os
import socket
from pathlib import Path

# Services as botocore names them in variables (`AWS_ENDPOINT_URL_<SERVICE>`).
_SERVICES = ("SAGEMAKER", "S3", "CLOUDWATCH_LOGS", "STS", "LAMBDA", "BUDGETS", "SNS")
# Below the ports that Linux gives to outgoing connections, and below those on which runs meet.
_FIRST, _COUNT = 10_000, 10_000
FILE = "doors.port"


def port(home: Path) -> int:
    """The port of a home, chosen the first time. The home must exist."""
    kept = home / FILE
    if not kept.exists():
        draft = home / f"{FILE}.{os.getpid()}"
        draft.write_text(str(_free(home)))
        try:
            os.link(draft, kept)  # of two processes, one is first
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return int(kept.read_text())


def url(home: Path) -> str:
    """Where the services of a home answer."""
    return f"http://127.0.0.1:{port(home)}"


def environment(home: Path) -> dict[str, str]:
    """Variables that lead SDKs to the emulated services."""
    return {f"AWS_ENDPOINT_URL_{service}": url(home) for service in _SERVICES}


def _free(home: Path) -> int:
    """A port that nobody has now; homes begin to look at different places."""
    digest = hashlib.sha256(os.fsencode(home.resolve())).digest()
    start = int.from_bytes(digest[:8], "big")
    for offset in range(_COUNT):
        candidate = _FIRST + (start + offset) % _COUNT
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            return candidate
    raise OSError(f"no port of 127.0.0.1 from {_FIRST} to {_FIRST + _COUNT - 1} is free")
