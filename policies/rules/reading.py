"""How rules read what several kinds have in common."""

import ipaddress
from typing import Any

EVERYWHERE = ("0.0.0.0/0", "::/0")


def is_world(cidr: Any) -> bool:
    """Whether a range is everybody, in whichever of its writings."""
    try:
        return ipaddress.ip_network(cidr, strict=False).prefixlen == 0
    except ValueError:
        return False
