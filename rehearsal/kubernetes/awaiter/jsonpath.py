"""The JSONPath that `pulumi.com/waitFor` is mostly written in: a part of RFC 9535.

Names, indexes, wildcards, and filters that compare with `==`, test for existence, and join by `&&` and `||`.
Everything else raises ValueError. The provider reads all of RFC 9535 (provider/pkg/jsonpath/jsonpath.go) but
what holds a single `=`, such as `!=`: it takes that for the value that is asked for.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Select = Callable[[Any], Iterator[Any]]
_Test = Callable[[Any], bool]

_NAME = re.compile(r"[A-Za-z_\u0080-\U0010ffff][\w\u0080-\U0010ffff]*")
_INDEX = re.compile(r"-?(0|[1-9]\d*)(?=\])")
_TEXT = re.compile(r'"([^"\\]*)"|\'([^\'\\]*)\'')
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_WORDS = {"true": True, "false": False, "null": None}


def parse(text: str) -> Select:
    """The values that an expression such as `$.status.phase` selects, in order. Raises ValueError."""
    reader = _Reader(text)
    reader.need("$")
    select = reader.segments()
    if reader.at < len(text):
        raise reader.unexpected()
    return select


class _Reader:
    """Reads an expression from the left."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def unexpected(self) -> ValueError:
        found = repr(self.text[self.at]) if self.at < len(self.text) else "the end"
        return ValueError(f"unexpected {found} at position {self.at + 1} of {self.text}")

    def take(self, token: str) -> bool:
        found = self.text.startswith(token, self.at)
        self.at += len(token) if found else 0
        return found

    def need(self, token: str) -> None:
        if not self.take(token):
            raise self.unexpected()

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def space(self) -> None:
        while self.take(" "):
            pass

    def segments(self) -> Select:
        steps: list[Select] = []
        while self.text.startswith((".", "["), self.at):
            steps.append(self.member() if self.take(".") else self.bracket())

        def select(value: Any) -> Iterator[Any]:
            found = [value]
            for step in steps:
                found = [inner for outer in found for inner in step(outer)]
            return iter(found)

        return select

    def member(self) -> Select:
        if self.take("*"):
            return _children
        name = self.match(_NAME)
        if name is None:
            raise self.unexpected()
        return _named(name.group())

    def bracket(self) -> Select:
        self.need("[")
        self.space()
        step = self.selector()
        self.space()
        self.need("]")
        return step

    def selector(self) -> Select:
        if self.take("*"):
            return _children
        if self.take("?"):
            test = self.either()
            return lambda value: (child for child in _children(value) if test(child))
        if text := self.match(_TEXT):
            return _named(text[1] if text[1] is not None else text[2])
        if index := self.match(_INDEX):
            return _numbered(int(index.group()))
        raise self.unexpected()

    # -- filters ---------------------------------------------------------------------------------------

    def either(self) -> _Test:
        tests = [self.both()]
        while self.joined("||"):
            tests.append(self.both())
        return lambda value: any(test(value) for test in tests)

    def both(self) -> _Test:
        tests = [self.test()]
        while self.joined("&&"):
            tests.append(self.test())
        return lambda value: all(test(value) for test in tests)

    def joined(self, token: str) -> bool:
        self.space()
        return self.take(token)

    def test(self) -> _Test:
        self.space()
        if self.take("("):
            inner = self.either()
            self.space()
            self.need(")")
            return inner
        self.need("@")
        select = self.segments()
        self.space()
        if self.take("=="):
            self.space()
            wanted = _typed([self.literal()])
            return lambda value: _typed(list(select(value))[:1]) == wanted
        return lambda value: next(select(value), _typed) is not _typed

    def literal(self) -> Any:
        if text := self.match(_TEXT):
            return text[1] if text[1] is not None else text[2]
        if number := self.match(_NUMBER):
            return json.loads(number.group())
        for word, value in _WORDS.items():
            if self.take(word):
                return value
        raise self.unexpected()


def _typed(values: list[Any]) -> list[Any]:
    """Values that compare as JSON does: true is not 1."""
    return [(isinstance(value, bool), value) for value in values]


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _named(name: str) -> Select:
    def select(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return select


def _numbered(index: int) -> Select:
    def select(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return select
