"""Install the CustomResourceDefinitions of a chart before its controller; runs in a pod of its own.

`pulumi up` waits for the Job that runs this file, and installs the chart only then: Helm creates the
definitions of a chart's folder `crds` once, and never changes them (docs/adr/0048). Objects that are stored
in an older version of their kind are written again first. A definition that does not serve what is stored is
refused, with the versions to pass through. Nothing is ever deleted. Standard library only. Exit codes: 0
installed; 1 refused, or not done in time; the reason is the container's termination message. What was done is
kept: run it again.
"""

import argparse
import json
import lzma
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from agents.shared.api_server import FORBIDDEN_S, ApiServer, ApiServerError, Object, finish
from agents.shared.schemas import SchemaLine, path

POLL_S = 1.0
KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_Result = TypeVar("_Result")


class DefinitionsError(Exception):
    """The definitions cannot be installed; the message has the fix."""


class Installation:
    """Definitions of one chart in one cluster. `lines`: those of the chart, oldest first."""

    def __init__(
        self, server: ApiServer, chart: str, version: str, lines: Sequence[SchemaLine], limit_s: float
    ) -> None:
        self._server, self._lines, self._limit_s = server, lines, limit_s
        self._chart, self._version = chart, version
        self._until = time.monotonic() + limit_s

    def run(self, names: Sequence[str], definitions: Mapping[str, Object]) -> str:
        """Install `definitions`; without any, only prepare the kinds `names` for those of the chart itself.

        Raises DefinitionsError.
        """
        current = {name: found for name in names if (found := self._get(name))}
        # All are judged before the first one changes.
        for name, found in current.items():
            self._judge(name, found, definitions.get(name))
        written = sum(self._rewrite(found) for found in current.values())
        for name, wanted in definitions.items():
            self._again(partial(self._write, name, wanted), f"write {name}")
        for name in definitions:
            self._again(partial(self._await, name), f"serve {name}")
        return f"{len(definitions)} definitions of {self._chart} {self._version}, {written} objects rewritten"

    def _get(self, name: str) -> Object | None:
        def read() -> Object | None:
            try:
                return self._server.must("GET", f"{KINDS}/{name}")
            except ApiServerError as error:
                if error.status == 404:
                    return None
                raise

        return self._again(read, f"read {name}")

    def _judge(self, name: str, current: Object, wanted: Object | None) -> None:
        stored = _stored(current)
        through = path(self._lines, stored, self._version)
        if stored in _served(wanted) if wanted else through == [self._version]:
            return
        fix = (
            f"Upgrade in steps: {', then '.join(through)}."
            if len(through) > 1
            else "Keep the chart's version that is installed."
        )
        raise DefinitionsError(
            f"{name}: stores {stored}, which {self._chart} {self._version} does not serve. {fix}"
        )

    def _rewrite(self, current: Object) -> int:
        """Write objects again that may be stored in an older version; returns their number."""
        name, stored = current["metadata"]["name"], _stored(current)
        if list((current.get("status") or {}).get("storedVersions") or [stored]) == [stored]:
            return 0
        spec = current["spec"]
        kind = f"/apis/{spec['group']}/{stored}"
        count = 0
        for namespace, one in self._again(partial(self._names, f"{kind}/{_plural(spec)}"), f"list {name}"):
            inside = f"/namespaces/{namespace}" if namespace else ""
            target = f"{kind}{inside}/{_plural(spec)}/{one}"
            # Without changes: the API server writes an object again that is stored in another version.
            self._again(partial(_patched, self._server, target), f"rewrite {target}")
            count += 1

        def forget() -> None:
            latest = self._server.must("GET", f"{KINDS}/{name}")
            status = {**latest["status"], "storedVersions": [stored]}
            self._server.must("PUT", f"{KINDS}/{name}/status", {**latest, "status": status})

        self._again(forget, f"write the status of {name}")
        return count

    def _names(self, path: str) -> list[tuple[str, str]]:
        """Namespace and name of every object. Only one page of whole objects is in memory."""
        heads = (found["metadata"] for found in self._server.every(path))
        return [(str(head.get("namespace") or ""), str(head["name"])) for head in heads]

    def _write(self, name: str, wanted: Object) -> None:
        """Create or replace a definition. Labels and annotations of others are kept."""
        status, current = self._server.ask("GET", f"{KINDS}/{name}")
        if status == 404:
            self._server.must("POST", KINDS, wanted)
            return
        if status >= 300:
            raise ApiServerError(status, str(current.get("message")))
        old, new = current["metadata"], wanted["metadata"]
        metadata = {
            "name": name,
            "resourceVersion": old["resourceVersion"],
            **{key: {**(old.get(key) or {}), **(new.get(key) or {})} for key in ("labels", "annotations")},
        }
        self._server.must("PUT", f"{KINDS}/{name}", {**wanted, "metadata": metadata})

    def _await(self, name: str) -> None:
        found = self._server.must("GET", f"{KINDS}/{name}")
        conditions = {row["type"]: row for row in (found.get("status") or {}).get("conditions") or ()}
        taken = conditions.get("NamesAccepted") or {}
        if taken.get("status") == "False":
            raise DefinitionsError(f"{name}: {taken.get('message')}. Remove the other definition.")
        if (conditions.get("Established") or {}).get("status") != "True":
            raise ApiServerError(503, f"{name} is not established yet")

    def _again(self, act: Callable[[], _Result], what: str) -> _Result:
        """The result of `act`, which is repeated on errors that can pass. Raises DefinitionsError."""
        denied = time.monotonic() + FORBIDDEN_S
        while True:
            try:
                return act()
            except ApiServerError as error:
                if error.status in (400, 422) or (error.status in (401, 403) and time.monotonic() >= denied):
                    raise DefinitionsError(f"cannot {what}: {error}") from error
                last: Exception = error
            except OSError as error:
                # An API server during an upgrade is unavailable for a while.
                last = error
            if time.monotonic() >= self._until:
                limit = f"{self._limit_s:.0f} s"
                raise DefinitionsError(f"cannot {what} within {limit}: {last}. Run it again.") from last
            time.sleep(POLL_S)


def _patched(server: ApiServer, target: str) -> None:
    status, found = server.ask("PATCH", target, {})
    if status >= 300 and status != 404:  # deleted meanwhile
        raise ApiServerError(status, str(found.get("message")))


def _plural(spec: Object) -> str:
    return str(spec["names"]["plural"])


def _served(definition: Object) -> list[str]:
    return [row["name"] for row in definition["spec"]["versions"] if row["served"]]


def _stored(definition: Object) -> str:
    return next(str(row["name"]) for row in definition["spec"]["versions"] if row["storage"])


def read(packed: Path) -> dict[str, Object]:
    """The definitions in a file of `components/kubernetes/definitions`, by name."""
    rows = json.loads(lzma.decompress(packed.read_bytes()))
    return {row["metadata"]["name"]: row for row in rows}


def main() -> int:
    """Install the definitions of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chart", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--lines", type=json.loads, required=True, help="schemas of the chart, as JSON")
    parser.add_argument("--names", type=json.loads, required=True, help="of the definitions, as JSON")
    parser.add_argument("--definitions", type=Path, help="file with them; none: the chart has them")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--message", type=Path, required=True)
    asked = parser.parse_args()
    lines = [SchemaLine(**row) for row in asked.lines]
    definitions = read(asked.definitions) if asked.definitions else {}
    installation = Installation(ApiServer(asked.account), asked.chart, asked.version, lines, asked.seconds)
    try:
        done = installation.run(asked.names, definitions)
    except DefinitionsError as error:
        return finish(str(error), asked.message, passed=False)
    return finish(done, asked.message, passed=True)


if __name__ == "__main__":
    sys.exit(main())
