"""Log streams of jobs and functions, one file per stream."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

_LONGEST_LINE = 1 << 18  # bytes of one event; source: CloudWatch Logs User Guide, "CloudWatch Logs quotas"


@dataclass(frozen=True)
class LogEvent:
    """One line; `timestamp` is in milliseconds since 1970, `number` counts the stream's events from zero."""

    number: int
    timestamp: int
    message: str
    stream: str = ""


class LogStore:
    """Log groups of all accounts and regions, stored in a folder of the home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "logs"
        self._lock = threading.Lock()

    def append(self, account: str, region: str, group: str, stream: str, lines: list[str]) -> None:
        """Append lines to a stream, which is created with the first line."""
        path = self._folder / account / region / _safe(group) / _safe(stream)
        now = int(time.time() * 1000)
        with self._lock:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps([now, line[:_LONGEST_LINE]]) + "\n" for line in lines)

    def groups(self, account: str | None, region: str) -> dict[str, list[Path]]:
        """Groups of a region, of one account or of all (None), with their folders."""
        found: dict[str, list[Path]] = {}
        for folder in sorted(self._folder.glob(f"{account or '*'}/{region}/*")):
            found.setdefault(unquote(folder.name), []).append(folder)
        return found

    def streams(self, account: str | None, region: str, group: str) -> dict[str, Path]:
        """The streams of a group. Raises KeyError without such a group."""
        folders = self.groups(account, region)[group]
        return {unquote(path.name): path for folder in folders for path in sorted(folder.iterdir())}


def events(path: Path, stream: str = "") -> list[LogEvent]:
    """The events of a stream, oldest first."""
    found = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file):
            if not line.endswith("\n"):  # incomplete line
                break
            when, message = json.loads(line)
            found.append(LogEvent(number, when, message, stream))
    return found


class Tail:
    """Reads the complete lines that were appended to a file since the last read."""

    def __init__(self, path: Path) -> None:
        self._path, self._position, self._half = path, 0, b""

    def lines(self, *, rest: bool = False) -> list[str]:
        """New lines; with `rest`, also a last line without a line break."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                data = file.read()
        except FileNotFoundError:
            data = b""
        self._position += len(data)
        *whole, self._half = (self._half + data).split(b"\n")
        if rest and self._half:
            whole.append(self._half)
            self._half = b""
        return [line.decode(errors="replace").rstrip("\r") for line in whole]


def _safe(name: str) -> str:
    return quote(name, safe="")


def shown(event: LogEvent, **more: Any) -> dict[str, Any]:
    """An event in the form of the service's response."""
    return {"timestamp": event.timestamp, "message": event.message, "ingestionTime": event.timestamp, **more}


def between(found: list[LogEvent], start: int | None, end: int | None) -> Iterator[LogEvent]:
    """Events from `start` (included) to `end` (excluded)."""
    for event in found:
        if (start is None or event.timestamp >= start) and (end is None or event.timestamp < end):
            yield event
