"""Severities of rules."""

from typing import Literal, get_args

Severity = Literal["low", "medium", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From the least to the most severe."""
