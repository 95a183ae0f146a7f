"""Reader of Terraform's configuration language, as far as examples of checks use it.

It returns blocks, attributes and expressions. Operators, conditions, `for` and splats of results are kept as
`Opaque`: their value is not known. The grammar is that of hashicorp/hcl, hclsyntax/spec.md (2.x). python-hcl2
8.1.4 was tried: it takes 4.1 s to start, and returns calls such as `jsonencode({...})` as text to be parsed.
"""

import re
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"(?:[ \t\r]|(?:#|//)[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SPACE_AND_LINES = re.compile(r"(?:\s|(?:#|//)[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NAME = re.compile(r"[^\W\d][\w-]*")
_NUMBER = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?")
_HEREDOC = re.compile(r"<<(-?)([^\W\d][\w-]*)\r?\n")
_OPERATOR = re.compile(r"\|\||&&|==|!=|<=|>=|[-+*/%<>?]")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
# Examples of checkov write booleans of Python as well, and mean the same.
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False}


class HclSyntaxError(ValueError):
    """The text is not in the language; the message names the line."""


@dataclass(frozen=True)
class Reference:
    """A traversal such as `aws_s3_bucket.a.id`; `*` stands for a splat."""

    path: tuple[str | int, ...]


@dataclass(frozen=True)
class Call:
    """A call of a function."""

    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Template:
    """A text with expressions in it."""

    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Opaque:
    """An expression whose value is not known here."""

    text: str


@dataclass
class Block:
    """A block: its type, its labels, and what is in its body, in order."""

    kind: str
    labels: tuple[str, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    blocks: list["Block"] = field(default_factory=list)


def parse(text: str) -> Block:
    """The body of a file. Raises HclSyntaxError."""
    reader = _Reader(text)
    body = Block("")
    reader.body(body, end="")
    return body


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._lines_count = [True]
        """Whether a line end is significant, by nesting."""

    def body(self, into: Block, end: str) -> None:
        while True:
            self._skip(_SPACE_AND_LINES)
            if self._at >= len(self._text):
                if end:
                    raise self._problem("a block is not closed")
                return
            if end and self._take(end):
                return
            self._item(into)

    def _item(self, into: Block) -> None:
        name = self._name() if self._peek() != '"' else str(self._quoted())
        self._skip(_SPACE)
        if self._peek() == "=" and self._text[self._at + 1 : self._at + 2] != "=":
            self._at += 1
            into.attributes[name] = self.expression()
            return
        labels = []
        while self._peek() != "{":
            labels.append(str(self._quoted()) if self._peek() == '"' else self._name())
            self._skip(_SPACE)
        self._at += 1
        block = Block(name, tuple(labels))
        self._nested(True, lambda: self.body(block, end="}"))
        into.blocks.append(block)

    def expression(self) -> Any:
        """A value, or one of the classes above."""
        self._skip()
        start = self._at
        if self._peek() in ("!", "-"):
            sign = self._text[self._at]
            self._at += 1
            value = self.expression()
            return -value if sign == "-" and type(value) in (int, float) else self._opaque(start)
        value = self._postfix(self._primary(), start)
        self._skip()
        if _OPERATOR.match(self._text, self._at):
            conditional = self._peek() == "?"
            self._at = _OPERATOR.match(self._text, self._at).end()  # type: ignore[union-attr]
            self.expression()
            self._skip()
            if conditional and self._take(":"):
                self.expression()
            return self._opaque(start)
        return value

    def _primary(self) -> Any:
        head = self._peek()
        if head == '"':
            return self._quoted()
        if heredoc := _HEREDOC.match(self._text, self._at):
            return self._heredoc(heredoc)
        if number := _NUMBER.match(self._text, self._at):
            self._at = number.end()
            return float(number[0]) if number[1] or number[2] else int(number[0])
        if head in ("[", "{", "("):
            self._at += 1
            return self._nested(head == "{", {"[": self._tuple, "{": self._object, "(": self._group}[head])
        name = self._name()
        if self._peek() == "(":
            self._at += 1
            return Call(name, tuple(self._nested(False, lambda: self._items(")"))))
        return _WORDS[name] if name in _WORDS else Reference((name,))

    def _postfix(self, value: Any, start: int) -> Any:
        while True:
            head = self._peek()
            if head == "." and self._text[self._at : self._at + 3] != "...":
                self._at += 1
                step: Any = "*" if self._take("*") else self._step()
            elif head == "[":
                self._at += 1
                step = self._nested(False, self._index)
            else:
                return value
            if isinstance(value, Reference) and isinstance(step, str | int):
                value = Reference((*value.path, step))
            else:
                value = self._opaque(start)

    def _step(self) -> str | int:
        if number := re.compile(r"\d+").match(self._text, self._at):
            self._at = number.end()
            return int(number[0])
        return self._name()

    def _index(self) -> Any:
        self._skip()
        index = "*" if self._take("*") else self.expression()
        self._expect("]")
        return index

    def _tuple(self) -> Any:
        return self._loop("]") or self._items("]")

    def _object(self) -> Any:
        loop = self._loop("}")
        if loop:
            return loop
        found: dict[str, Any] = {}
        while True:
            self._skip(_SPACE_AND_LINES)
            if self._take("}"):
                return found
            key = self._key()
            self._skip()
            if not self._take("="):
                self._expect(":")
            found[key] = self.expression()
            self._skip()
            self._take(",")

    def _key(self) -> str:
        start = self._at
        key = self.expression()
        return key if isinstance(key, str) else self._text[start : self._at].strip()

    def _group(self) -> Any:
        value = self.expression()
        self._expect(")")
        return value

    def _items(self, end: str) -> list[Any]:
        found: list[Any] = []
        while True:
            self._skip()
            if self._take(end):
                return found
            found.append(self.expression())
            self._skip()
            if self._text.startswith("...", self._at):
                self._at += 3
                self._skip()
            if not self._take(","):
                self._expect(end)
                return found

    def _loop(self, end: str) -> Opaque | None:
        """A `for` expression, whose parts are read and forgotten."""
        self._skip(_SPACE_AND_LINES)
        start = self._at
        if not re.compile(r"for\s").match(self._text, self._at):
            return None
        depth = 0
        while self._at < len(self._text):
            head = self._peek()
            if head == '"':
                self._quoted()
                continue
            depth += (head in "([{") - (head in ")]}")
            self._at += 1
            if depth < 0:
                break
        if self._text[self._at - 1] != end:
            raise self._problem("a for expression is not closed")
        return self._opaque(start)

    def _quoted(self) -> Any:
        self._expect('"')
        return self._template(end='"', escapes=True)

    def _heredoc(self, start: re.Match[str]) -> Any:
        lines, self._at = [], start.end()
        while True:
            line, found, _ = self._text[self._at :].partition("\n")
            self._at += len(line) + len(found)
            if line.strip() == start[2]:
                self._at -= len(found)
                break
            if not found:
                raise self._problem(f"{start[2]} does not end")
            lines.append(line.rstrip("\r"))
        if start[1]:
            indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
            lines = [line[min(indents, default=0) :] for line in lines]
        return _Reader("".join(f"{line}\n" for line in lines))._template(end="", escapes=False)

    def _template(self, end: str, escapes: bool) -> Any:
        parts: list[Any] = []
        text = ""
        while True:
            if self._at >= len(self._text):
                if end:
                    raise self._problem("a text is not closed")
                break
            head = self._text[self._at]
            if end and head == end:
                self._at += 1
                break
            if self._text.startswith(("$${", "%%{"), self._at):
                text += self._text[self._at + 1 : self._at + 3]
                self._at += 3
            elif self._text.startswith(("${", "%{"), self._at):
                parts += [text, self._inserted()]
                text = ""
            elif escapes and head == "\\":
                after = self._text[self._at + 1 : self._at + 2]
                text += _ESCAPES.get(after, f"\\{after}")
                self._at += 2
            else:
                text += head
                self._at += 1
        parts = [part for part in (*parts, text) if part != ""]
        if all(isinstance(part, str) for part in parts):
            return "".join(parts)
        return parts[0] if len(parts) == 1 else Template(tuple(parts))

    def _inserted(self) -> Any:
        directive = self._text[self._at] == "%"
        start = self._at
        self._at += 2
        self._take("~")
        if directive:
            end = self._text.find("}", self._at)
            if end < 0:
                raise self._problem("a directive is not closed")
            self._at = end + 1
            return self._opaque(start)

        def inner() -> Any:
            value = self.expression()
            self._skip()
            self._take("~")
            self._expect("}")
            return value

        return self._nested(False, inner)

    def _nested(self, lines_count: bool, read: Any) -> Any:
        self._lines_count.append(lines_count)
        try:
            return read()
        finally:
            self._lines_count.pop()

    def _skip(self, pattern: re.Pattern[str] | None = None) -> None:
        chosen = pattern or (_SPACE if self._lines_count[-1] else _SPACE_AND_LINES)
        self._at = chosen.match(self._text, self._at).end()  # type: ignore[union-attr]

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, wanted: str) -> bool:
        found = self._text.startswith(wanted, self._at)
        self._at += len(wanted) if found else 0
        return found

    def _expect(self, wanted: str) -> None:
        self._skip()
        if not self._take(wanted):
            raise self._problem(f"{wanted} is missing")

    def _name(self) -> str:
        name = _NAME.match(self._text, self._at)
        if name is None:
            raise self._problem("a name is missing")
        self._at = name.end()
        return name[0]

    def _opaque(self, start: int) -> Opaque:
        return Opaque(self._text[start : self._at].strip())

    def _problem(self, what: str) -> HclSyntaxError:
        return HclSyntaxError(f"line {self._text.count(chr(10), 0, self._at) + 1}: {what}")
