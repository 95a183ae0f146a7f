"""Retries of creates by the provider: only for a missing namespace or kind.

Sources: pulumi/pulumi-kubernetes provider/pkg/await/await.go (Creation), provider/pkg/retry/retry.go. An
unreachable webhook, a conflict and every other error fail a create at once; updates and deletes are never
retried.
"""

from collections.abc import Callable
from typing import TypeVar

from rehearsal.core.model import Call, RefusalError

# Between six attempts. The provider waits 32 s more after the last one before it fails.
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)

_Result = TypeVar("_Result")


def retried(call: Call, act: Callable[[], _Result], *, times: float = 1.0) -> _Result:
    """Result of a create, retried `times` as fast. Raises RefusalError with the last error."""
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
