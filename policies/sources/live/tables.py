"""The tables of each cloud: what to ask, and what the answers become."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from infra.discovery import modules
from policies.sources.live.form import Kind
from policies.sources.live.question import Question

CLOUDS = ("aws", "gcp", "kubernetes")


@dataclass(frozen=True)
class Tables:
    """Of one cloud."""

    questions: Mapping[str, Question]
    """By name; a question stands behind the one whose items it is asked for."""
    kinds: tuple[Kind, ...]
    elsewhere: frozenset[str]
    """Types of which there is none."""
    beyond: Mapping[str, str]
    """By the beginning of a type: why the cloud does not tell of it."""


@functools.cache
def tables(cloud: str) -> Tables:
    """Those of a cloud, from all modules below its package. Raises ModuleNotFoundError for another cloud."""
    questions: dict[str, Question] = {}
    kinds: list[Kind] = []
    elsewhere: frozenset[str] = frozenset()
    beyond: dict[str, str] = {}
    for module in modules(f"policies.sources.live.{cloud}"):
        questions |= {one.name: one for one in getattr(module, "QUESTIONS", ())}
        kinds += getattr(module, "KINDS", ())
        elsewhere |= getattr(module, "ELSEWHERE", frozenset())
        beyond |= getattr(module, "BEYOND", {})
    return Tables(questions, tuple(kinds), elsewhere, beyond)
