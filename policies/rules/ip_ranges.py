"""IP ranges."""

import ipaddress
from typing import Any

# Shorter prefixes belong to no organization: two halves of the internet are the internet. The spec of a stack
# has the same limit (`infra/catalog/aws/network.py`); global IPv6 addresses are 2000::/3.
_WIDEST = {4: 8, 6: 16}


def is_world(cidr: Any) -> bool:
    """Return whether a range, in any notation, is all or a large part of the internet."""
    try:
        network = ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return False
    return network.prefixlen < _WIDEST[network.version]
