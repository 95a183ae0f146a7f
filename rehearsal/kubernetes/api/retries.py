"""Which creates the provider tries again: those whose namespace or kind is missing, and no others.

Sources: pulumi/pulumi-kubernetes provider/pkg/await/await.go (Creation), provider/pkg/retry/retry.go. A
webhook that cannot be called, a conflict and every other answer fail a create at once; updates and deletes
are never tried again.
"""

from collections.abc import Callable
from typing import TypeVar

from rehearsal.core.model import Call, RefusalError

# Between six tries. The provider pauses for 32 s more after the last one before it tells.
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)

_Result = TypeVar("_Result")


def retried(call: Call, act: Callable[[], _Result], *, times: float = 1.0) -> _Result:
    """The result of a create, tried again `times` as fast. Raises RefusalError with the last answer."""
    for number, pause_s in enumerate(PAUSES_S):
        try:
            return act()
        except RefusalError as refusal:
            if refusal.code not in ("NotFound", "NoMatch"):
                raise
            call.log("status", f"Retry #{number}; creation failed: {refusal.message}")
            if call.cancelled.wait(pause_s / times):
                raise
    return act()
