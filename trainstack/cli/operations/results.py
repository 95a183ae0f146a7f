"""Results of validations, read from where their runs stored them: verdict and nodes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from infra.gate import Gate
from infra.outputs import cluster as outputs
from rehearsal.client import Rehearsal

Result = Mapping[str, Any]


class UnreadableError(Exception):
    """The result cannot be read; the message is the reason."""


@dataclass(frozen=True)
class NodesResult:
    """The last validation of a pool: its nodes and headline, or why they are unknown."""

    pool: str
    uri: str
    nodes: tuple[str, ...] = ()
    headline: str = ""
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return f"unknown: {self.uri} cannot be read: {self.error}"
        return f"{', '.join(self.nodes) or 'no rank reported'}: {self.headline}"


def read(uri: str, region: str, rehearsal: Rehearsal | None) -> Result:
    """The result at `uri`, read with the caller's own rights. Raises UnreadableError."""
    content = _file(rehearsal, uri) if rehearsal else _stored(uri, region)
    try:
        found = json.loads(content)
    except ValueError as error:
        raise UnreadableError(f"not JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("cluster"), dict):
        raise UnreadableError("not the result of a validation")
    return found


def headline(result: Result) -> str:
    """One line: verdict with its main figures, ranks, duration."""
    cluster = result["cluster"]
    where = f"{len(cluster['ranks'])} {cluster['device']} ranks on {cluster['nodes']} nodes"
    return f"{result['headline']} ({where}, {result['duration_s']:.0f} s)"


def uri_of(run: outputs.ValidationRun, gate: Gate) -> str:
    """URI of the result of a pool's last validation: the outputs name the last one that passed, beside it."""
    return run.result_uri.replace(run.job, gate.run.rpartition("/")[2])


def by_nodes(
    gates: Sequence[Gate], exported: outputs.StackOutputs, rehearsal: Rehearsal | None
) -> Iterator[NodesResult]:
    """Read the result of each pool's last validation."""
    runs = {run.pool: run for run in exported.smoke}
    for gate in gates:
        run = runs.get(gate.pool)
        if run is None:
            continue
        uri = uri_of(run, gate)
        try:
            result = read(uri, exported.region, rehearsal)
            nodes = sorted({str(rank["host"]) for rank in result["cluster"]["ranks"]})
            yield NodesResult(gate.pool, uri, tuple(nodes), result["headline"])
        except UnreadableError as error:
            yield NodesResult(gate.pool, uri, error=str(error))


def _file(rehearsal: Rehearsal, uri: str) -> bytes:
    try:
        return rehearsal.local_path(uri).read_bytes()
    except (OSError, ValueError) as error:
        raise UnreadableError(str(error)) from error


def _stored(uri: str, region: str) -> bytes:
    place = urlsplit(uri)
    if place.scheme == "gs":
        return _on_google(uri)
    if place.scheme != "s3":
        raise UnreadableError("it is stored in a volume of the cluster")
    from botocore import exceptions  # noqa: PLC0415 - slow to import

    from infra.clouds.aws.login import LoggedOutError, clients  # noqa: PLC0415

    try:
        found = clients()("s3", region).get_object(Bucket=place.netloc, Key=place.path.lstrip("/"))
        return bytes(found["Body"].read())
    except (exceptions.BotoCoreError, exceptions.ClientError, LoggedOutError) as error:
        raise UnreadableError(str(error)) from error


def _on_google(uri: str) -> bytes:
    from infra.clouds.gcp import storage as google_store  # noqa: PLC0415 - slow to import

    try:
        return google_store.read_object(uri)
    except google_store.CloudStorageError as error:
        raise UnreadableError(str(error)) from error
