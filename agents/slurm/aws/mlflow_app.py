"""An MLflow App of SageMaker, and its artifacts in S3, with the role of the machine.

Clients of the service write artifacts to its bucket. So addresses of artifacts are exchanged for those of
MLflow's proxy (`mlflow-artifacts:`), and this program writes. Source: sagemaker-mlflow 0.5.0,
mlflow_sagemaker_helpers.py (headers and address); mlflow 3.17, server/handlers.py (`mlflow-artifacts`);
Amazon S3 API Reference, PutObject, GetObject, ListObjectsV2.
"""

import hashlib
import http.client
import json
import os
import urllib.parse
from collections.abc import Iterator
from typing import IO
from xml.etree import ElementTree

from agents.mlflow_server.bodies import TooLargeError
from agents.slurm.aws import requests
from agents.slurm.aws.requests import UNSIGNED, MachineKeys
from agents.slurm.upstream import Reply

_TIMEOUT_S = 60.0
_PIECE = 1 << 20
MOST_BYTES = 5 << 30
"""Of an object that one PutObject writes (Amazon S3 User Guide, "Uploading objects")."""
_PROXIED = b"mlflow-artifacts:/"
_NO_BODY = hashlib.sha256(b"").hexdigest()


class AppUpstream:
    """See `upstream.Upstream`."""

    def __init__(self, arn: str, artifacts: str) -> None:
        """`artifacts`: `s3://bucket/folder`. Raises ValueError for another ARN or address."""
        words = arn.split(":")
        if len(words) != 6 or words[2] != "sagemaker" or not artifacts.startswith("s3://"):
            raise ValueError(f"{arn} is no MLflow App, or {artifacts} no folder of S3")
        self._arn, self._region, self._keys = arn, words[3], MachineKeys()
        self._bucket, _, self._folder = artifacts.removeprefix("s3://").strip("/").partition("/")
        self._server = (
            os.environ.get("SAGEMAKER_MLFLOW_CUSTOM_ENDPOINT")
            or f"https://mlflow.sagemaker.{self._region}.app.aws"
        )
        self._store = os.environ.get("AWS_ENDPOINT_URL_S3") or f"https://s3.{self._region}.amazonaws.com"
        self._uri = f"s3://{self._bucket}/{self._folder}/".encode()

    def call(self, method: str, target: str, content: bytes, content_type: str) -> Reply:
        """See `upstream.Upstream`."""
        content = content.replace(_PROXIED, self._uri)
        path, _, query = target.partition("?")
        # A space as %20: a plus, as clients write it, is signed as it is, and read as a space.
        pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
        target = f"{path}?{urllib.parse.urlencode(pairs, quote_via=urllib.parse.quote)}" if pairs else path
        sent = {"x-sm-mlflow-app-arn": self._arn, "content-type": content_type or "application/json"}
        digest = hashlib.sha256(content).hexdigest()
        answer = self._send(method, self._server + target, digest, sent, content)
        found = answer.read().replace(self._uri, _PROXIED)
        return Reply(answer.status, answer.getheader("Content-Type") or "", iter([found]))

    def put(self, path: str, body: IO[bytes], length: int) -> Reply:
        """See `upstream.Upstream`."""
        if length > MOST_BYTES:
            raise TooLargeError(
                f"an artifact has at most {MOST_BYTES} bytes (5 GiB): write larger files to a shared folder,"
                " and log their path"
            )
        answer = self._send("PUT", self._object(path), UNSIGNED, {"content-length": str(length)}, body)
        return _of_mlflow(answer, b"{}")

    def get(self, path: str) -> Reply:
        """See `upstream.Upstream`."""
        answer = self._send("GET", self._object(path), _NO_BODY, {}, b"")
        if answer.status != http.client.OK:
            return _of_mlflow(answer, b"")
        size = {"Content-Length": length} if (length := answer.getheader("Content-Length")) else {}
        return Reply(answer.status, "application/octet-stream", _pieces(answer), size)

    def listed(self, folder: str) -> Reply:
        """See `upstream.Upstream`."""
        prefix = f"{self._folder}/{folder.strip('/')}/"
        query, files = {"list-type": "2", "delimiter": "/", "prefix": prefix}, list[dict[str, object]]()
        while True:
            url = (
                f"{self._store}/{self._bucket}?{urllib.parse.urlencode(query, quote_via=urllib.parse.quote)}"
            )
            answer = self._send("GET", url, _NO_BODY, {}, b"")
            if answer.status != http.client.OK:
                return _of_mlflow(answer, b"")
            found = ElementTree.fromstring(answer.read())  # noqa: S314 - of S3, over TLS
            files += _files(found, prefix)
            token = found.findtext("{*}NextContinuationToken")
            if not token:
                files.sort(key=lambda one: str(one["path"]))
                return Reply(200, "application/json", iter([json.dumps({"files": files}).encode()]))
            query["continuation-token"] = token

    def _object(self, path: str) -> str:
        return f"{self._store}/{self._bucket}/{urllib.parse.quote(f'{self._folder}/{path}', safe='/-_.~')}"

    def _send(
        self, method: str, url: str, digest: str, headers: dict[str, str], body: bytes | IO[bytes]
    ) -> http.client.HTTPResponse:
        place = self._region, "s3" if url.startswith(f"{self._store}/{self._bucket}") else "sagemaker"
        sent = requests.signed(self._keys.current(), method, url, place, digest=digest, headers=headers)
        parts = urllib.parse.urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.netloc, timeout=_TIMEOUT_S)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        try:
            connection.request(method, target, body or None, sent)
            return connection.getresponse()
        except http.client.HTTPException as error:
            raise OSError(f"{method} {parts.netloc}: {error}") from error


def _files(found: ElementTree.Element, prefix: str) -> Iterator[dict[str, object]]:
    for one in found.iterfind("{*}CommonPrefixes/{*}Prefix"):
        yield {"path": str(one.text).removeprefix(prefix).strip("/"), "is_dir": True}
    for one in found.iterfind("{*}Contents"):
        name = str(one.findtext("{*}Key")).removeprefix(prefix)
        if name:
            yield {"path": name, "is_dir": False, "file_size": int(one.findtext("{*}Size") or 0)}


def _of_mlflow(answer: http.client.HTTPResponse, content: bytes) -> Reply:
    """The response to a request for S3 as MLflow's own proxy gives it: a reason in JSON for a failure."""
    found = answer.read()
    if answer.status == http.client.OK:
        return Reply(200, "application/json", iter([content]))
    code = "RESOURCE_DOES_NOT_EXIST" if answer.status == http.client.NOT_FOUND else "INTERNAL_ERROR"
    text = f"S3: status {answer.status}: {found[:300].decode(errors='replace')}"
    body = json.dumps({"error_code": code, "message": text}).encode()
    return Reply(answer.status, "application/json", iter([body]))


def _pieces(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    while piece := answer.read(_PIECE):
        yield piece
