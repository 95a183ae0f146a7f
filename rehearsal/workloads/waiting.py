"""Reasons why a pod cannot start yet."""


class WaitingError(Exception):
    """A pod cannot start yet: reason of the kubelet or scheduler, and message."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason, self.message = reason, message
        super().__init__(f"[{reason}] {message}")
