"""How rules read what several kinds have in common."""

import ipaddress
from typing import Any

# Shorter prefixes are nobody's range: two halves of the internet are the internet. The spec of a stack has
# the same limit (`infra/catalog/aws/network.py`); global IPv6 addresses are 2000::/3.
_WIDEST = {4: 8, 6: 16}


def is_world(cidr: Any) -> bool:
    """Whether a range is everybody or a large part of the internet, in whichever of its writings."""
    try:
        network = ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return False
    return network.prefixlen < _WIDEST[network.version]
