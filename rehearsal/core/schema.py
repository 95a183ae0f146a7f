"""Schemas of resource types, read from the installed SDK and cached on disk."""

import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The process may still be importing the SDK, on a machine with much other work.
_END_S = 300
# Part of the cache folder's name: increase it whenever the output of `sdk_types` changes.
_FORMAT = 2


@dataclass(frozen=True)
class Property:
    """One input: its type (the JSON form of `sdk_types`) and whether it is required."""

    type: Any
    required: bool


@dataclass(frozen=True)
class ResourceSchema:
    """One resource type: inputs, outputs (name -> str, bool, int, float, list, map, any), nested objects.

    `computed` are the optional inputs that the provider fills in and keeps where a program leaves them out.
    """

    token: str
    inputs: Mapping[str, Property]
    outputs: Mapping[str, str]
    objects: Mapping[str, Mapping[str, Property]]
    computed: frozenset[str] = frozenset()


class Schemas:
    """The resource types of one package; thread-safe, each type read on first use.

    `cache` is a folder shared by every rehearsal on this machine; it holds one file per type below a folder
    named after the SDK's version, so that a new version is read again.
    """

    def __init__(self, package: str, cache: Path) -> None:
        self.package = package
        self.version = sdk_version(package) or "0.0.0"
        self._folder = cache / f"{package}-{self.version}-{_FORMAT}"
        self._lock = threading.Lock()
        self._known: dict[str, ResourceSchema | None] = {}
        self._worker: subprocess.Popen[str] | None = None

    def resource(self, token: str) -> ResourceSchema | None:
        """The schema of a resource type, or None when the installed SDK does not have it."""
        with self._lock:
            if token not in self._known:
                self._known[token] = _parse(token, self._load(token))
            return self._known[token]

    def close(self) -> None:
        """End the process that reads the SDK, if it runs; it is restarted when needed."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            assert worker.stdin is not None and worker.stdout is not None
            worker.stdin.close()
            worker.wait(timeout=_END_S)
            worker.stdout.close()

    def _load(self, token: str) -> Any:
        digest = hashlib.sha256(token.encode()).hexdigest()[:12]
        file = self._folder / f"{token.rpartition(':')[2]}-{digest}.json"
        try:
            return json.loads(file.read_text())
        except (OSError, ValueError):
            data = self._ask(token)
        if data is not None:  # unknown types may be typing errors: they are not cached
            self._folder.mkdir(parents=True, exist_ok=True)
            draft = file.with_suffix(f".{os.getpid()}")
            draft.write_text(json.dumps(data, separators=(",", ":")))
            draft.replace(file)
        return data

    def _ask(self, token: str) -> Any:
        if self.version == "0.0.0" or "\n" in token:
            return None
        if self._worker is None or self._worker.poll() is not None:
            self._worker = subprocess.Popen(
                [sys.executable, "-m", "rehearsal.core.sdk_types", self.package],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[2],
            )
        assert self._worker.stdin is not None and self._worker.stdout is not None
        self._worker.stdin.write(token + "\n")
        self._worker.stdin.flush()
        answer = self._worker.stdout.readline()
        if not answer:
            raise RuntimeError(f"the SDK of {self.package} could not be read; see the daemon's log")
        return json.loads(answer)


def sdk_version(package: str) -> str | None:
    """The version of the installed SDK of a package, or None."""
    try:
        return importlib.metadata.version(f"pulumi-{package}")
    except importlib.metadata.PackageNotFoundError:
        return None


def is_map(form: Any) -> bool:
    """Return whether a type is a map with any keys."""
    return isinstance(form, dict) and "map" in form


def _parse(token: str, data: Any) -> ResourceSchema | None:
    if data is None:
        return None
    return ResourceSchema(
        token=token,
        inputs=_properties(data["inputs"]),
        outputs=data["outputs"],
        objects={name: _properties(fields) for name, fields in data["objects"].items()},
        computed=frozenset(data["computed"]),
    )


def _properties(data: Mapping[str, Any]) -> dict[str, Property]:
    return {name: Property(entry["type"], entry["required"]) for name, entry in data.items()}
