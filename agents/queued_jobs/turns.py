"""Requests that have a bound, in turn of the namespaces that cause them; standard library only."""

import time
from collections.abc import Callable
from typing import TypeVar

# Other work of the process waits meanwhile.
LONGEST_S = 10.0

_Item = TypeVar("_Item")


class Turns:
    """So many requests at once, then one in a time; no team delays those of another.

    Times `at` are of a clock that never goes back.
    """

    def __init__(self, burst: int, each_s: float) -> None:
        self._burst, self._each_s = float(burst), each_s
        self._allowance, self._filled = self._burst, 0.0
        self._used: dict[str, float] = {}
        """Requests of each namespace, counted from the turn at which it began."""
        self._turn = 0.0

    def spend(self) -> None:
        """Count a request."""
        self._allowance -= 1

    def take(self, due: dict[str, list[_Item]], act: Callable[[_Item], None], at: float) -> None:
        """Perform what is due, as far as the bound allows: the items of each namespace from the end.

        `act` counts its requests (`spend`).
        """
        self._allowance = min(self._burst, self._allowance + (at - self._filled) / self._each_s)
        self._filled = at
        until = time.monotonic() + LONGEST_S
        while due and self._allowance >= 1 and time.monotonic() < until:
            # The namespace with the fewest requests so far; one that had none for a while saves up nothing.
            namespace = min(due, key=lambda name: max(self._turn, self._used.get(name, 0.0)))
            item = due[namespace].pop()
            if not due[namespace]:
                del due[namespace]
            self._turn, before = max(self._turn, self._used.get(namespace, 0.0)), self._allowance
            try:
                act(item)
            finally:
                self._used[namespace] = self._turn + before - self._allowance
