"""Loopback addresses of pods, stable for the lifetime of their owner and unique."""

import hashlib
import ipaddress
import os
from collections.abc import Iterator

from rehearsal.core.state import State

_SPACE = "pod-address"
# Linux accepts all of 127.0.0.0/8; pods use this part.
_NETWORK = ipaddress.ip_network("127.64.0.0/10")
_BLOCK = 256
_FIRST = 10  # the first addresses of a block stay free


class Addresses:
    """Allocates addresses and keeps them in the state, so that a restarted daemon assigns the same ones.

    Each rehearsal starts in a block derived from the path of its state, so that rehearsals of one machine do
    not collide.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        digest = hashlib.sha256(os.fsencode(state.path.resolve())).digest()
        blocks = _NETWORK.num_addresses // _BLOCK
        self._start = int.from_bytes(digest[:8], "big") % blocks * _BLOCK + _FIRST

    def of(self, owner: str) -> str:
        """The address of an owner, allocated on first use."""
        with self._state.transaction():
            known = self._state.document(_SPACE, owner)
            if known is None:
                taken = set(self._state.documents(_SPACE).values())
                known = next(address for address in self._candidates() if address not in taken)
                self._state.put_document(_SPACE, owner, known)
        return str(known)

    def release(self, prefix: str) -> None:
        """Release the addresses of every owner whose name starts with `prefix`."""
        with self._state.transaction():
            for owner in self._state.documents(_SPACE):
                if owner.startswith(prefix):
                    self._state.drop_document(_SPACE, owner)

    def _candidates(self) -> Iterator[str]:
        size, base = _NETWORK.num_addresses, int(_NETWORK.network_address)
        for offset in range(size - 2):
            # The network address itself is never assigned.
            yield str(ipaddress.ip_address(base + 1 + (self._start + offset - 1) % (size - 2)))
