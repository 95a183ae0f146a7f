"""Lambda for boto3: Invoke, for functions with Python code in the emulated AWS.

Each call is a process of its own that ends with it, as after a cold start. Source: AWS Lambda API Reference,
Invoke; Developer Guide, "Defined runtime environment variables" and "Lambda execution environment" (10 s to
initialise beside the timeout).
"""

import base64
import json
import re
import secrets
import sys
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.assets import AssetError, unpack, unpack_bytes
from rehearsal.dataplane.aws import shapes
from rehearsal.dataplane.aws.authorization import authorise, context_of
from rehearsal.dataplane.aws.http import Request, Response, ServiceError, json_response
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.dataplane.aws.identity import OPERATOR, Denied, Identities
from rehearsal.dataplane.aws.s3.objects import Objects
from rehearsal.jobs.log_store import LogStore, Tail
from rehearsal.jobs.rows import row
from rehearsal.workloads.process import ContainerProcess
from rehearsal.workloads.translate import ProcessPlan

TYPE = "aws:lambda/function:Function"
_PATH = re.compile(r"/2015-03-31/functions/(?P<name>[^/]+)/invocations/?")
_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
_INITIALISE_S = 10.0
_TAIL_BYTES = 4096  # source: API Reference, Invoke (LogType Tail: "the last 4 KB")


class Functions:
    """See `http.Service`."""

    def __init__(self, state: State, logs: LogStore) -> None:
        self._state, self._logs = state, logs
        self._identities: Identities | None = None
        self._url = ""
        self._processes: dict[ContainerProcess, tuple[str, Path]] = {}  # (name, log) of the function
        self._lock = threading.Lock()

    def open(self, identities: Identities, url: str) -> None:
        """Accept calls: credentials come from `identities`, requests of functions go to `url`."""
        self._identities, self._url = identities, url

    def stop(self) -> None:
        """Kill every running call."""
        with self._lock:
            processes = list(self._processes)
        for process in processes:
            process.kill()

    def live(self) -> list[dict[str, Any]]:
        """A row for each running call, in the form of a pod's."""
        with self._lock:
            calls = list(self._processes.items())
        return [
            row(
                "Function",
                "",
                name,
                "Running",
                pod=name,
                ready=True,
                log=str(log),
                pids=[process.supervisor_pid, *process.pids()],
            )
            for process, (name, log) in calls
        ]

    def answer(self, request: Request) -> Response:
        """See `http.Service`."""
        match = _PATH.fullmatch(request.path)
        if match is None or request.method != "POST":
            raise ServiceError(
                "UnknownOperationException", f"{request.method} {request.path} is not emulated"
            )
        shapes.check("lambda", "Invoke", {"FunctionName": unquote(match["name"])})
        function = self._found(request, unquote(match["name"]))
        event = request.body.read() or b"{}"
        try:
            json.loads(event)
        except ValueError:
            message = "Could not parse request body into json"
            raise ServiceError("InvalidRequestContentException", message) from None
        kind = request.headers.get("x-amz-invocation-type", "RequestResponse")
        if kind == "DryRun":
            return Response(204)
        if kind == "Event":
            threading.Thread(target=self._call, args=(function, event, request.region), daemon=True).start()
            return Response(202)
        value, failed, tail = self._call(function, event, request.region)
        headers = {"Content-Type": "application/json", "X-Amz-Executed-Version": "$LATEST"}
        if failed:
            headers["X-Amz-Function-Error"] = "Unhandled"
        if request.headers.get("x-amz-log-type") == "Tail":
            headers["X-Amz-Log-Result"] = base64.b64encode(tail.encode()[-_TAIL_BYTES:]).decode()
        return Response(200, json.dumps(value).encode(), headers)

    def refusal(self, error: ServiceError) -> Response:
        """See `http.Service`."""
        found = json_response({"Type": "User", "message": error.message}, error.status)
        return Response(found.status, found.body, {**found.headers, "x-amzn-ErrorType": error.code})

    def _found(self, request: Request, name: str) -> Record:
        """The function that a name, a partial or a full ARN names. Raises ServiceError."""
        plain = name.rpartition(":function:")[2].partition(":")[0]
        account = request.caller.account
        for record in self._state.find(type=TYPE):
            owner, _, region = record.scope.partition("/")
            known = str(record.outputs.get("name") or record.id) == plain
            if known and region == request.region and (request.caller == OPERATOR or owner == account):
                arn = str(record.outputs.get("arn"))
                check = AccessCheck("lambda:InvokeFunction", arn, context_of(request.region))
                authorise(self._state, request.caller, [check])
                return record
        arn = f"arn:aws:lambda:{request.region}:{account}:function:{plain}"
        raise ServiceError("ResourceNotFoundException", f"Function not found: {arn}", 404)

    def _call(self, function: Record, event: bytes, region: str) -> tuple[Any, bool, str]:
        """Result of one call, whether it is an error, and the function's log."""
        inputs, name = function.inputs, str(function.outputs.get("name") or function.id)
        runtime = str(inputs.get("runtime") or "")
        if not runtime.startswith("python"):
            message = f"A rehearsal runs functions of Python only, not of {runtime or 'an image'}"
            raise ServiceError("InvalidRuntimeException", message, 502)
        stream = f"{datetime.now(UTC):%Y/%m/%d}/[$LATEST]{secrets.token_hex(16)}"
        timeout_s = float(inputs.get("timeout") or 3)
        with tempfile.TemporaryDirectory(dir=self._state.path.parent, prefix="function-") as made:
            folder = Path(made)
            code = folder / "code"
            code.mkdir()
            self._unpack(function, region, code)
            (folder / "event").write_bytes(event)
            environment = self._environment(function, name, stream, region, folder)
            argv = (
                *(sys.executable, str(_BOOTSTRAP), str(inputs.get("handler"))),
                *(str(folder / "event"), str(folder / "result")),
            )
            plan, limit_s = ProcessPlan(argv, environment, code), _INITIALISE_S + timeout_s
            ended = self._run(name, plan, folder / "log", limit_s)
            lines = Tail(folder / "log").lines(rest=True)
            self._logs.append(function.scope.partition("/")[0], region, f"/aws/lambda/{name}", stream, lines)
            result = folder / "result"
            found = json.loads(result.read_text()) if result.exists() else _silent(ended, timeout_s)
            failed = "error" in found
            return found["error" if failed else "value"], failed, "\n".join(lines)

    def _run(self, name: str, plan: ProcessPlan, log: Path, limit_s: float) -> int | None:
        """Run a process to its end; None after a timeout."""
        process = ContainerProcess(plan, log, (), 0.5)
        with self._lock:
            self._processes[process] = (name, log)
        try:
            return process.wait(limit_s)
        finally:
            process.kill()
            with self._lock:
                del self._processes[process]

    def _unpack(self, function: Record, region: str, folder: Path) -> None:
        """Unpack the code into a folder. Raises ServiceError when it is not available."""
        inputs = function.inputs
        try:
            if isinstance(inputs.get("code"), dict):
                unpack(inputs["code"], folder)
                return
            found = Objects(self._state, OPERATOR, region).get(
                str(inputs.get("s3Bucket")), str(inputs.get("s3Key"))
            )
            unpack_bytes(found.path.read_bytes(), folder)
        except AssetError as error:
            raise ServiceError("InvalidZipFileException", str(error), 502) from None

    def _environment(
        self, function: Record, name: str, stream: str, region: str, folder: Path
    ) -> dict[str, str]:
        inputs = function.inputs
        assert self._identities is not None
        token = self._identities.role_token(str(inputs["role"]), name, "lambda.amazonaws.com", folder)
        try:
            keys = self._identities.credentials(token.read_text())
        except Denied:
            message = "The role defined for the function cannot be assumed by Lambda."
            raise ServiceError("InvalidParameterValueException", message) from None
        given = (inputs.get("environment") or {}).get("variables") or {}
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            "PYTHONUNBUFFERED": "1",
            **{str(key): str(value) for key, value in given.items()},
            "_HANDLER": str(inputs.get("handler")),
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_LAMBDA_FUNCTION_NAME": name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(inputs.get("memorySize") or 128),
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
            "AWS_LAMBDA_LOG_STREAM_NAME": stream,
            "LAMBDA_TASK_ROOT": str(folder / "code"),
            "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
            "AWS_SESSION_TOKEN": keys["Token"],
            "AWS_ENDPOINT_URL": self._url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "REHEARSAL_FUNCTION_ARN": str(function.outputs.get("arn")),
            "REHEARSAL_TIMEOUT_S": str(inputs.get("timeout") or 3),
        }


def _silent(ended: int | None, timeout_s: float) -> dict[str, Any]:
    """Error of the service for a function that returned no result."""
    if ended is None:
        described = {
            "errorMessage": f"Task timed out after {timeout_s:.2f} seconds",
            "errorType": "Sandbox.Timedout",
        }
    else:
        text = f"RequestId: unknown Error: Runtime exited with error: exit status {ended}"
        described = {"errorMessage": text, "errorType": "Runtime.ExitError"}
    return {"error": described}
