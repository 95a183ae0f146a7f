"""The verdict of a validation as one line of JSON: the termination message of its pods.

Pods of a validation write it, the pod that waits for them (`agents.waiting`) passes it on, the provider and
the engine carry it in their diagnostics, and readers find it there as JSON. Standard library only.
"""

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

SCHEMA = "trainstack.verdict/1"
LIMIT_BYTES = 4096
"""The kubelet keeps this much of a termination message (pkg/kubelet/container/runtime.go)."""
LIMIT_VARIABLE = "TERMINATION_MESSAGE_BYTES"
"""Environment variable with the limit of a service that keeps less."""
_BEGINS = json.dumps({"schema": SCHEMA}).removesuffix("}")
_CUT = " ..."
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class VerdictRecord:
    """Outcome of a validation."""

    verdict: str
    """PASS, FAIL, INCONCLUSIVE, ERROR or SKIPPED; ERROR also where the validation did not run to its end."""
    message: str
    """One sentence for people: the verdict, the decisive figure, the suspect."""
    run: str = ""
    """Namespace and name of the Job."""
    pool: str = ""
    details: tuple[str, ...] = ()
    """Further lines for people, the most important first."""

    def line(self, limit: int = LIMIT_BYTES) -> str:
        """One line of JSON of at most `limit` bytes; drops details from the end, then cuts the message."""
        kept, message = [_printable(text) for text in self.details], _printable(self.message)

        def encoded(message: str) -> bytes:
            fields = {"schema": SCHEMA, **asdict(self), "message": message, "details": kept}
            known = {name: value for name, value in fields.items() if value}
            return json.dumps(known, ensure_ascii=False).encode()

        while len(encoded(message)) > limit and kept:
            kept.pop()
        if len(encoded(message)) > limit:
            # By its length in JSON: a character has several bytes there, or is escaped.
            fitting = bisect_right(
                range(len(message)), limit, key=lambda end: len(encoded(message[:end] + _CUT))
            )
            message = message[: fitting - 1] + _CUT if fitting > 1 else ""
        return encoded(message).decode()

    @property
    def text(self) -> str:
        """The record for people: the run and the message, then the details."""
        return "\n".join(
            [f"validation {self.run}: {self.message}" if self.run else self.message, *self.details]
        )


def limit_of(environment: Mapping[str, str]) -> int:
    """The most bytes that a termination message may have in this place."""
    return int(environment.get(LIMIT_VARIABLE) or LIMIT_BYTES)


def records(text: str) -> Iterator[VerdictRecord]:
    """The records in a text such as a termination message or a diagnostic of the engine."""
    for _, _, found in _found(text):
        yield found


def readable(text: str) -> str:
    """The text with each record in its form for people."""
    parts, end = [], 0
    for first, last, found in _found(text):
        parts += [text[end:first], found.text]
        end = last
    return "".join([*parts, text[end:]])


def _found(text: str) -> Iterator[tuple[int, int, VerdictRecord]]:
    end = 0
    while (first := text.find(_BEGINS, end)) >= 0:
        try:
            fields, end = _DECODER.raw_decode(text, first)
            yield first, end, _parsed(fields)
        except (ValueError, TypeError):
            end = max(end, first + len(_BEGINS))  # cut off, or not a record of this version


def _parsed(fields: dict[str, object]) -> VerdictRecord:
    """Fields that a later minor addition brings are ignored. Raises TypeError."""
    names = ("verdict", "message", "run", "pool")
    known = {"message": "", **{name: str(fields[name]) for name in names if name in fields}}
    details = fields.get("details", ())
    if not isinstance(details, list | tuple):
        raise TypeError("details are no list")
    return VerdictRecord(**known, details=tuple(map(str, details)))


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text.encode(errors="replace").decode())
