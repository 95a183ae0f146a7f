"""The tool that asks a provider for its limits, before providers that report errors as SDK 2 does."""

import json
from collections.abc import Mapping
from typing import Any, cast

from tools.aws_limits.ask import of_type
from tools.provider_protocol import Diagnostic, Fields, TerraformProvider

KINDS = ["BLUE", "RED"]
LIST = 2


def field(number: int, value: bytes | int) -> bytes:
    """A field of a message: bytes, or a number."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    size = len(value)
    return bytes([number << 3 | 2, size & 0x7F | 0x80, size >> 7]) + value


def attribute(name: str) -> bytes:
    """An optional text."""
    return field(2, field(1, name.encode()) + field(2, json.dumps("string").encode()) + field(5, 1))


def block(name: str, *inside: bytes) -> bytes:
    """A list of blocks."""
    return field(3, field(1, name.encode()) + field(2, b"".join(inside)) + field(3, LIST))


def schema(*inside: bytes) -> Fields:
    """A block at the top."""
    found: Fields = {}
    for one in inside:
        found.setdefault(one[0] >> 3, []).append(one[3:])
    return found


class Provider:
    """A provider with one type, which refuses other kinds than KINDS."""

    def __init__(self, of: Fields) -> None:
        self.schemas = {"aws_thing": of}

    def validate(self, _: str, config: Mapping[str, Any]) -> list[Diagnostic]:
        """The errors of a configuration."""
        raise NotImplementedError

    def facts(self) -> Mapping[str, Any]:
        """The facts that the tool finds."""
        return of_type(cast(TerraformProvider, self), "aws_thing")


def refusal(kind: str, *path: str) -> Diagnostic:
    """The words of a provider, at a path."""
    listed = " ".join(f'"{one}"' for one in KINDS)
    return Diagnostic(f"expected kind to be one of [{listed}], got {kind}", "", path)


class AtANeighbour(Provider):
    """The errors about the fourth names of paths are reported at any of them, sometimes at the right one."""

    def __init__(self) -> None:
        inside = block("c", attribute("kind"), attribute("name"), block("d", attribute("kind")))
        super().__init__(schema(block("a", block("b", inside))))
        self._turn = 0

    def validate(self, _: str, config: Mapping[str, Any]) -> list[Diagnostic]:
        """The errors of a configuration."""
        found = []
        for one in config["a"]:
            for two in one["b"]:
                for three in two["c"]:
                    self._turn += 1
                    if three["kind"] not in (None, *KINDS):
                        found.append(refusal(three["kind"], "a", "b", "c", ("kind", "name")[self._turn % 2]))
                    found += [
                        refusal(four["kind"], "a", "b", "c", "d", "kind")
                        for four in three["d"]
                        if four["kind"] not in (None, *KINDS)
                    ]
        return found


class WithItsPartner(Provider):
    """A block is judged only where another property is set."""

    def __init__(self) -> None:
        super().__init__(schema(block("runtime", attribute("kind")), attribute("code"), attribute("url")))

    def validate(self, _: str, config: Mapping[str, Any]) -> list[Diagnostic]:
        """The errors of a configuration."""
        kinds = [one["kind"] for one in config["runtime"]]
        found = []
        if config["code"] and config["url"]:
            found = [Diagnostic("conflict", '"code": conflicts with url', ("code",))]
            found += [Diagnostic("conflict", '"url": conflicts with code', ("url",))]
        if kinds and config["code"] is None:
            return [*found, Diagnostic("Missing", '"runtime": all of `code,runtime` must be specified', ())]
        return [*found, *(refusal(one, "runtime", "kind") for one in kinds if one not in (None, *KINDS))]


def test_an_error_that_is_reported_at_a_neighbour_is_about_the_only_one_that_is_set() -> None:
    for _ in range(3):
        assert AtANeighbour().facts() == {"words": {"a.b.c.kind": KINDS, "a.b.c.d.kind": KINDS}}


def test_a_block_is_judged_beside_what_it_needs() -> None:
    assert WithItsPartner().facts()["words"] == {"runtime.kind": KINDS}
