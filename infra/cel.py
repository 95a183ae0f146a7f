"""Attribute conditions of workload identity providers, in the Common Expression Language.

Whether a condition limits the identities is decided by its logic: it is not evaluated for a token. Grammar:
google/cel-spec doc/langdef.md; variables: IAM, "Workload Identity Federation", attribute conditions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r"""(?:\s|//[^\n]*)*(?:(?P<text>r?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))|(?P<number>\d+(?:\.\d+)?)u?"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<mark>\|\||&&|[=!<>]=|[-<>!()\[\]{}.,?:+*/%]))"""
)
_BINARY = (
    ("||",),
    ("&&",),
    ("==", "!=", "<", "<=", ">", ">=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)


class CelError(Exception):
    """The text is no expression that this reader knows."""


@dataclass(frozen=True)
class CelNode:
    """A node: `kind` is value, name, list, not, an operator, `?`, `call:NAME`, `index`, or `field:NAME`."""

    kind: str
    parts: tuple["CelNode", ...] = ()
    value: Any = None


def parse(text: str) -> CelNode:
    """The expression of a text. Raises CelError if it is none."""
    tokens: list[tuple[str, str]] = []
    position = 0
    while re.sub(r"//[^\n]*", "", text[position:]).strip():
        found = _TOKEN.match(text, position)
        if not found:
            raise CelError(text[position:])
        tokens.append((str(found.lastgroup), found.group(str(found.lastgroup))))
        position = found.end()
    reader = _Reader(tokens)
    made = reader.whole()
    if reader.tokens:
        raise CelError(reader.tokens[0][1])
    return made


class _Reader:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens

    def take(self, *marks: str) -> str:
        """The next token if it is one of the marks, else nothing."""
        if self.tokens and self.tokens[0][0] != "text" and self.tokens[0][1] in marks:
            return self.tokens.pop(0)[1]
        return ""

    def need(self, mark: str) -> None:
        if not self.take(mark):
            raise CelError(f"{mark} is missing")

    def whole(self) -> CelNode:
        first = self.binary(0)
        if not self.take("?"):
            return first
        then = self.binary(0)
        self.need(":")
        return CelNode("?", (first, then, self.whole()))

    def binary(self, level: int) -> CelNode:
        if level == len(_BINARY):
            return self.unary()
        left = self.binary(level + 1)
        while mark := self.take(*_BINARY[level]):
            left = CelNode(mark, (left, self.binary(level + 1)))
        return left

    def unary(self) -> CelNode:
        if self.take("!"):
            return CelNode("not", (self.unary(),))
        if self.take("-"):
            return CelNode("-", (CelNode("value", value=0), self.unary()))
        return self.member()

    def member(self) -> CelNode:
        made = self.primary()
        while mark := self.take(".", "["):
            if mark == "[":
                made = CelNode("index", (made, self.whole()))
                self.need("]")
            else:
                name = self.name()
                if self.take("("):
                    made = CelNode(f"call:{name}", (made, *self.listed(")")), True)
                else:
                    made = CelNode(f"field:{name}", (made,))
        return made

    def name(self) -> str:
        if not self.tokens or self.tokens[0][0] != "name":
            raise CelError("a name is missing")
        return self.tokens.pop(0)[1]

    def primary(self) -> CelNode:
        if self.take("("):
            made = self.whole()
            self.need(")")
            return made
        if self.take("["):
            return CelNode("list", tuple(self.listed("]")))
        if not self.tokens:
            raise CelError("it ends too early")
        kind, text = self.tokens.pop(0)
        if kind == "mark":
            raise CelError(text)
        if kind == "name" and text not in _WORDS:
            if self.take("("):
                return CelNode(f"call:{text}", tuple(self.listed(")")))
            return CelNode("name", value=text)
        return CelNode("value", value=_literal(kind, text))

    def listed(self, end: str) -> Iterator[CelNode]:
        if self.take(end):
            return
        while True:
            yield self.whole()
            if self.take(end):
                return
            self.need(",")


_WORDS = {"true": True, "false": False, "null": None}


def _literal(kind: str, text: str) -> Any:
    if kind == "text":
        return text[2:-1] if text.startswith("r") else re.sub(r"\\(.)", r"\1", text[1:-1])
    return float(text) if kind == "number" else _WORDS[text]


OPEN = object()
"""Stands for a value that depends on the token."""


def constant(node: CelNode) -> Any:
    """The value of an expression without claims; OPEN if a claim, or an unknown function, decides it."""
    if node.kind == "value":
        return node.value
    parts = [constant(part) for part in node.parts]
    decisive = node.kind == "||"
    if node.kind in ("&&", "||") and any(part is decisive for part in parts):
        return decisive
    if node.kind in _BINARY[2] and _is_same(node):
        return node.kind not in ("!=", "<", ">")
    if any(part is OPEN for part in parts) or node.kind == "name":
        return OPEN
    try:
        return _FOLDED[node.kind](*parts)
    except (KeyError, TypeError, ValueError, re.error, IndexError, ZeroDivisionError):
        return OPEN


def _is_same(node: CelNode) -> bool:
    """Return whether a comparison is of an expression with itself, or with a list that contains it."""
    left, right = node.parts
    if node.kind == "in":
        return right.kind == "list" and left in right.parts
    return left == right


def extracted(text: str, template: str) -> str:
    """The part of a text in the place of the name in `before{name}after`; empty where the text differs.

    Source: IAM documentation, "Attribute reference for IAM Conditions", `extract`.
    """
    before, _, rest = template.partition("{")
    _, closed, after = rest.partition("}")
    start = text.find(before)
    if not closed or start < 0:
        return ""
    start += len(before)
    end = text.find(after, start) if after else len(text)
    return text[start:end] if end >= 0 else ""


_FOLDED: Mapping[str, Any] = {
    "list": lambda *parts: list(parts),
    "not": lambda a: not a,
    "&&": lambda a, b: a and b,
    "||": lambda a, b: a or b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "in": lambda a, b: a in b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
    "?": lambda a, b, c: b if a else c,
    "index": lambda a, b: a[int(b)] if isinstance(a, list) else a[b],
    "call:size": len,
    "call:startsWith": lambda a, b: a.startswith(b),
    "call:endsWith": lambda a, b: a.endswith(b),
    "call:contains": lambda a, b: b in a,
    "call:matches": lambda a, b: re.search(b, a) is not None,
    "call:lowerAscii": lambda a: a.lower(),
    "call:upperAscii": lambda a: a.upper(),
    "call:string": str,
    "call:extract": extracted,
}


def with_names(node: CelNode, names: Mapping[str, CelNode]) -> CelNode:
    """The expression with other expressions instead of names."""
    if node.kind == "name":
        return names.get(node.value, node)
    return CelNode(node.kind, tuple(with_names(part, names) for part in node.parts), node.value)


def path(node: CelNode) -> Sequence[str]:
    """The names of `assertion.a['b']`; empty for an expression that is no such path."""
    if node.kind == "name":
        return (node.value,)
    if node.kind.startswith("field:"):
        before = path(node.parts[0])
        return (*before, node.kind[6:]) if before else ()
    if node.kind == "index" and isinstance(node.parts[1].value, str) and node.parts[1].kind == "value":
        before = path(node.parts[0])
        return (*before, node.parts[1].value) if before else ()
    return ()
