"""Equal files are judged once in a process: each verdict takes a process that composes the stack."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import pytest

from trainstack.stamp import effects, verdict
from trainstack.stamp.verdict import Judging, StackVerdict


class JudgingOnce:
    """`Judging` that remembers; a process judges other files, or those of another cloud or profile."""

    found: dict[str, dict[str, StackVerdict]] = {}  # noqa: RUF012 - of all objects

    def __init__(self, cloud: str, profile: str) -> None:
        self._kind = cloud, profile

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing runs."""

    def verdicts(
        self, texts: Mapping[str, str], project: str, stacks: Sequence[str]
    ) -> dict[str, StackVerdict]:
        key = json.dumps([self._kind, project, [*stacks], dict(texts)], sort_keys=True)
        if key not in self.found:
            with Judging(*self._kind) as judging:
                self.found[key] = judging.verdicts(texts, project, stacks)
        return self.found[key]


@pytest.fixture(autouse=True, scope="session")
def _judged_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (verdict, effects):
            patch.setattr(module, "Judging", JudgingOnce)
        yield
