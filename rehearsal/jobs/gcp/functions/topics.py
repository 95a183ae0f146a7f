"""Cloud Run functions with Pub/Sub triggers: one process per message, one message at a time.

Source: Eventarc documentation, "Event delivery retries" and "Roles for Pub/Sub triggers" (the trigger's
account needs the right to call the service); googleapis/google-cloudevents, MessagePublishedData. Logs of
functions are in `functions/` of the home. Not emulated: the build of the image, and its rights.
"""

import json
import logging
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.assets import unpack
from rehearsal.dataplane.gcp.iam_bindings import allowed
from rehearsal.dataplane.gcp.identity import account_caller, machine_identity
from rehearsal.dataplane.gcp.server import GooglePlane
from rehearsal.gcp.rules.book import block
from rehearsal.jobs.rows import row
from rehearsal.workloads.process import ContainerProcess
from rehearsal.workloads.translate import ProcessPlan, clean_start

_FUNCTION, _SERVICE = "gcp:cloudfunctionsv2/function:Function", "gcp:cloudrunv2/service:Service"
_OBJECT = "gcp:storage/bucketObject:BucketObject"
_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
_APIS = ("AIPLATFORM", "NOTEBOOKS", "STORAGE", "SECRETMANAGER", "PUBSUB")
# Seconds until redelivery after a failure; the service retries for a day.
_AGAIN_S = (0.0, 10.0, 20.0)
_LOG = logging.getLogger("rehearsal")


class TopicFunctions:
    """The functions of a rehearsal, until `stop`."""

    def __init__(self, state: State, plane: GooglePlane) -> None:
        self._state, self._plane, self._home = state, plane, state.path.parent
        self._running: dict[str, ContainerProcess] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._stopping = threading.Event()

    def wake(self, topic: str, messages: Sequence[Mapping[str, Any]]) -> None:
        """Deliver messages of a topic to its functions, in threads of their own."""
        for function in self._state.find(type=_FUNCTION):
            if block(function.inputs, "eventTrigger").get("pubsubTopic") == topic:
                self._locks.setdefault(function.id, threading.Lock())
                threading.Thread(target=self._deliver, args=(function, messages), daemon=True).start()

    def live(self) -> list[dict[str, Any]]:
        """A row for each running call, in the form of a pod's."""
        return [
            row("Function", "", name, "Running", pod=name, ready=True, pids=[one.supervisor_pid, *one.pids()])
            for name, one in list(self._running.items())
        ]

    def stop(self) -> None:
        """Kill every running call."""
        self._stopping.set()
        for process in list(self._running.values()):
            process.kill()

    def _deliver(self, function: Record, messages: Sequence[Mapping[str, Any]]) -> None:
        again = block(function.inputs, "eventTrigger").get("retryPolicy") == "RETRY_POLICY_RETRY"
        with self._locks[function.id]:
            for message in messages:
                for pause in _AGAIN_S if again else _AGAIN_S[:1]:
                    if self._stopping.wait(pause) or self._processed(function, message):
                        break

    def _processed(self, function: Record, message: Mapping[str, Any]) -> bool:
        """Return whether the function processed a message without an error."""
        name = function.id.rpartition("/")[2]
        if not self._may_call(function, name):
            _LOG.warning("%s: The request was not authenticated: the trigger may not call it", name)
            return False
        log = self._home / "functions" / f"{name}.log"
        log.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._home, prefix="function-") as made:
            folder = Path(made)
            for part in ("code", "home", "tmp"):
                (folder / part).mkdir()
            source = block(function.inputs, "buildConfig", "source", "storageSource")
            unpack(self._source(source).inputs["source"], folder / "code")
            event = folder / "event.json"
            event.write_text(json.dumps({"message": dict(message), "subscription": function.id}))
            entry = str(block(function.inputs, "buildConfig").get("entryPoint"))
            argv = (sys.executable, str(_BOOTSTRAP), entry, str(event))
            plan = ProcessPlan(argv, dict(self._environment(function, name, folder)), folder / "code")
            process = self._running[name] = ContainerProcess(plan, log, (), 0.5)
            try:
                config = block(function.inputs, "serviceConfig")
                return process.wait(float(config.get("timeoutSeconds") or 60)) == 0
            finally:
                process.kill()
                del self._running[name]

    def _may_call(self, function: Record, name: str) -> bool:
        """Return whether the trigger's account may call the function's service."""
        email = str(block(function.inputs, "eventTrigger").get("serviceAccountEmail"))
        services = self._state.find(type=_SERVICE)
        behind = next((one for one in services if one.id.endswith(f"/services/{name}")), None)
        members = account_caller(email).members
        return behind is not None and allowed(self._state, members, "run.routes.invoke", behind, behind.id)

    def _source(self, place: Mapping[str, Any]) -> Record:
        wanted = place.get("bucket"), place.get("object")
        found = self._state.find(type=_OBJECT)
        return next(one for one in found if (one.inputs.get("bucket"), one.outputs.get("name")) == wanted)

    def _environment(self, function: Record, name: str, folder: Path) -> Iterator[tuple[str, str]]:
        config = block(function.inputs, "serviceConfig")
        yield from clean_start(folder, name).items()
        for key, value in block(config, "environmentVariables").items():
            yield str(key), str(value)
        project, region = str(function.outputs.get("project")), str(function.outputs.get("location"))
        identity = machine_identity(str(config.get("serviceAccountEmail")), project, region)
        yield "K_SERVICE", name
        yield "GCE_METADATA_HOST", self._plane.metadata_host(identity)
        for api in _APIS:
            yield f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}", self._plane.url
