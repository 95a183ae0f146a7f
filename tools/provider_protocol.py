"""A Terraform provider on this machine, asked for its plans by the protocol that `terraform plan` speaks.

Version 5 of the protocol (docs/plugin-protocol/tfplugin5.proto of hashicorp/terraform): a process that prints
an address, gRPC without TLS, values as MessagePack. The provider reaches no cloud for a plan.
"""

import functools
import json
import os
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

# github.com/hashicorp/terraform internal/plugin/serve.go; it keeps people from starting a provider by hand.
_COOKIE = ("TF_PLUGIN_MAGIC_COOKIE", "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2")
_LARGEST = 512 * 2**20
Fields = dict[int, list[Any]]
LIST, SET = 2, 3
MANY = (LIST, SET)


class Unknown:
    """A value that is known after the change."""


@dataclass(frozen=True)
class Answer:
    """What a provider plans: the state afterwards, the top-level properties that replace, and its errors."""

    planned: Any
    replaces: list[str]
    errors: list[str]
    legacy: bool
    """Whether SDK 2 made the plan, to which an empty value is none."""


@dataclass(frozen=True)
class Diagnostic:
    """An error about a configuration: its text, and the names of the attributes on the way to the cause.

    The way ends at a set: the protocol has no path to an item of one.
    """

    summary: str
    detail: str
    path: tuple[str, ...]


class TerraformProvider:
    """A running provider; `schemas` are its resource types."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel
        response = _fields(self._call("GetSchema", b""))
        self.schemas: dict[str, Fields] = {}
        for entry in response[2]:
            pair = _fields(entry)
            self.schemas[pair[1][0].decode()] = _fields(_fields(pair[2][0])[2][0])
        self._settings = _fields(_fields(response[1][0])[2][0])

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Set the provider up; attributes that are not given are null. Raises RuntimeError."""
        value = {**empty(self._settings), **settings}
        for name, inner, *_ in blocks(self._settings):
            value[name] = [{**empty(inner), **one} for one in settings.get(name, ())]
        request = _bytes(1, b"1.11.4") + _bytes(2, _bytes(1, pack(value)))
        if errors := _errors(_fields(self._call("Configure", request)).get(1, [])):
            raise RuntimeError("; ".join(errors))

    def plan(self, kind: str, prior: Any, proposed: Any, config: Any) -> Answer:
        """The plan for a resource whose state is `prior`."""
        request = _bytes(1, kind.encode())
        for number, value in ((2, prior), (3, proposed), (4, config)):
            request += _bytes(number, _bytes(1, pack(value)))
        found = _fields(self._call("PlanResourceChange", request))
        planned = _fields(found[1][0]).get(1, [b"\xc0"])[0] if 1 in found else b"\xc0"
        replaces = []
        for path in found.get(2, []):
            steps = [_fields(step) for step in _fields(path).get(1, [])]
            replaces.append(steps[0][1][0].decode() if steps and 1 in steps[0] else "")
        return Answer(unpack(planned), replaces, _errors(found.get(4, [])), bool(found.get(5, [0])[0]))

    def validate(self, kind: str, config: Any) -> list[Diagnostic]:
        """The errors of a configuration of a resource; warnings are left out."""
        request = _bytes(1, kind.encode()) + _bytes(2, _bytes(1, pack(config)))
        rows = map(_fields, _fields(self._call("ValidateResourceTypeConfig", request)).get(1, []))
        return [_diagnostic(row) for row in rows if row.get(1, [0])[0] == 1]

    def _call(self, method: str, request: bytes) -> bytes:
        call: Callable[..., bytes] = self._channel.unary_unary(f"/tfplugin5.Provider/{method}")
        return call(request, timeout=120)


@contextmanager
def running(binary: Path) -> Iterator[TerraformProvider]:
    """Start a provider; it ends with the context."""
    environment = {**os.environ, _COOKIE[0]: _COOKIE[1], "PLUGIN_PROTOCOL_VERSIONS": "5", "TF_LOG": "off"}
    environment.setdefault("GOGC", "400")  # its schemas are most of its memory
    process = subprocess.Popen(
        [binary], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        _, _, network, address, *_ = process.stdout.readline().strip().split("|")
        target = f"unix:{address}" if network == "unix" else address
        limits = [("grpc.max_receive_message_length", _LARGEST), ("grpc.max_send_message_length", _LARGEST)]
        with grpc.insecure_channel(target, options=limits) as channel:
            yield TerraformProvider(channel)
    finally:
        process.kill()
        process.wait()


def attributes(block: Fields) -> Iterator[tuple[str, Any, bool, bool, bool]]:
    """(name, type, required, optional, computed) of the attributes of a block."""
    yield from filter(None, map(_attribute, block.get(2, [])))


def blocks(block: Fields) -> Iterator[tuple[str, Fields, int, int]]:
    """(name, block, nesting: one of the constants, lowest number of items) of the blocks in a block."""
    yield from map(_block, block.get(3, []))


def limits(block: Fields) -> Iterator[tuple[str, int, int]]:
    """(name, fewest, most) of the blocks in a block; zero is no limit."""
    for entry in block.get(3, []):
        one = _fields(entry)
        yield one[1][0].decode(), one.get(4, [0])[0], one.get(5, [0])[0]


def empty(block: Fields) -> dict[str, Any]:
    """The value of a block in which nothing is set."""
    found: dict[str, Any] = {name: None for name, *_ in attributes(block)}
    return found | {name: [] if nesting in MANY else None for name, _, nesting, _ in blocks(block)}


# -- protobuf ------------------------------------------------------------------------------------------


# A schema is read again for every configuration of its type.
@functools.lru_cache(maxsize=2**17)
def _attribute(entry: bytes) -> tuple[str, Any, bool, bool, bool] | None:
    one = _fields(entry)
    if 2 not in one:
        return None
    required, optional, computed = (bool(one.get(number, [0])[0]) for number in (4, 5, 6))
    return one[1][0].decode(), json.loads(one[2][0]), required, optional, computed


@functools.lru_cache(maxsize=2**17)
def _block(entry: bytes) -> tuple[str, Fields, int, int]:
    one = _fields(entry)
    return one[1][0].decode(), _fields(one[2][0]), one.get(3, [0])[0], one.get(4, [0])[0]


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _fields(data: bytes) -> Fields:
    found: Fields = {}
    place = 0

    def number() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(data):
        key = number()
        if key & 7 == 0:
            found.setdefault(key >> 3, []).append(number())
        elif key & 7 == 2:
            size = number()
            found.setdefault(key >> 3, []).append(data[place : place + size])
            place += size
        else:
            raise ValueError(f"wire type {key & 7}")
    return found


def _errors(diagnostics: list[bytes]) -> list[str]:
    rows = [_fields(one) for one in diagnostics]
    return [
        " ".join(row[number][0].decode() for number in (2, 3) if number in row)
        for row in rows
        if row.get(1, [0])[0] == 1
    ]


def _diagnostic(row: Fields) -> Diagnostic:
    summary, detail = (row[number][0].decode() if number in row else "" for number in (2, 3))
    steps = map(_fields, _fields(row[4][0]).get(1, [])) if 4 in row else ()
    return Diagnostic(summary, detail, tuple(step[1][0].decode() for step in steps if 1 in step))


# -- MessagePack ---------------------------------------------------------------------------------------


def pack(value: Any) -> bytes:
    """A value as MessagePack."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", True: b"\xc3", False: b"\xc2"}[value]
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode()
        return b"\xdb" + struct.pack(">I", len(data)) + data
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
    items = b"".join(pack(name) + pack(item) for name, item in value.items())
    return b"\xdf" + struct.pack(">I", len(value)) + items


def unpack(data: bytes) -> Any:
    """The value of MessagePack; an extension is an `Unknown`."""
    value, _ = _unpack(data, 0)
    return value


_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"}
_NUMBERS |= {0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_SIZES = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_MANY = {0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}
_PLAIN = {0xC0: None, 0xC2: False, 0xC3: True}


def _unpack(data: bytes, place: int) -> tuple[Any, int]:
    kind, place = data[place], place + 1
    if kind in _PLAIN or kind <= 0x7F or kind >= 0xE0:
        return (_PLAIN[kind] if kind in _PLAIN else kind if kind <= 0x7F else kind - 256), place
    if kind in _NUMBERS:
        return struct.unpack_from(_NUMBERS[kind], data, place)[0], place + struct.calcsize(_NUMBERS[kind])
    size, after = _size(kind, data, place)
    if 0xA0 <= kind <= 0xBF or kind in _SIZES:
        return data[after : after + size].decode(errors="replace"), after + size
    if not 0x80 <= kind <= 0x9F and kind not in _MANY:
        return Unknown, place + _extension(kind, data, place)
    is_map = kind < 0x90 or kind >= 0xDE
    items = []
    for _ in range(size * 2 if is_map else size):
        item, after = _unpack(data, after)
        items.append(item)
    return dict(zip(items[::2], items[1::2], strict=True)) if is_map else items, after


def _size(kind: int, data: bytes, place: int) -> tuple[int, int]:
    """The length of a text or the number of items, and the place after it."""
    form = _SIZES.get(kind) or _MANY.get(kind)
    if form is None:
        return kind & (31 if kind >= 0xA0 else 15), place
    return int(struct.unpack_from(form, data, place)[0]), place + struct.calcsize(form)


def _extension(kind: int, data: bytes, place: int) -> int:
    """The size of an extension after its first byte."""
    if 0xD4 <= kind <= 0xD8:
        return 1 + (1 << (kind - 0xD4))
    header = {0xC7: ">B", 0xC8: ">H", 0xC9: ">I"}[kind]
    (size,) = struct.unpack_from(header, data, place)
    return struct.calcsize(header) + 1 + int(size)
