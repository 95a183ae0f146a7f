"""The plugin as a process of its own, and an engine that answers it: the protocol is the real one."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.proto import (
    engine_pb2_grpc,
    provider_pb2,
    provider_pb2_grpc,
    resource_pb2,
    resource_pb2_grpc,
)

ROOT = Path(__file__).resolve().parents[2]
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_SIGNATURE, _OUTPUT = "4dabf18193072939515e22adb298388d", "d0e6a833031e9bbcd3f4e8bde6ca49a4"


class Monitor(resource_pb2_grpc.ResourceMonitorServicer, engine_pb2_grpc.EngineServicer):
    """Accepts every resource: its outputs are its inputs, and outside of a preview an id and an ARN."""

    def __init__(self) -> None:
        self.made: dict[str, resource_pb2.RegisterResourceRequest] = {}
        self.preview = False

    def SupportsFeature(self, request: Any, context: Any) -> resource_pb2.SupportsFeatureResponse:
        return resource_pb2.SupportsFeatureResponse(hasSupport=True)

    def RegisterResource(self, request: Any, context: Any) -> resource_pb2.RegisterResourceResponse:
        self.made[f"{request.type} {request.name}"] = request
        urn = f"urn:pulumi:dev::p::{request.type}::{request.name}"
        if not request.custom or self.preview:
            return resource_pb2.RegisterResourceResponse(urn=urn, object=request.object)
        made = struct_pb2.Struct()
        made.CopyFrom(request.object)
        made.update({"arn": f"arn:{request.name}", "bucket": request.name})
        return resource_pb2.RegisterResourceResponse(urn=urn, id=f"{request.name}-id", object=made)

    def RegisterResourceOutputs(self, request: Any, context: Any) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: Any) -> provider_pb2.InvokeResponse:
        # Of a provider that the program passes.
        response = provider_pb2.InvokeResponse()
        found: dict[str, Any] = {"urn": MessageToDict(request.args).get("urn"), "id": "id", "state": {}}
        getattr(response, "return").update(found)
        return response

    def Log(self, request: Any, context: Any) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def inputs(self, resource: str) -> dict[str, Any]:
        return MessageToDict(self.made[resource].object)


class Plugin:
    """The plugin that runs, and what it registered at the engine."""

    def __init__(self, stub: provider_pb2_grpc.ResourceProviderStub, monitor: Monitor, address: str) -> None:
        self.stub, self.monitor, self._address = stub, monitor, address

    def construct(
        self, component: str, name: str, inputs: Mapping[str, Any], *, preview: bool = False, **options: Any
    ) -> provider_pb2.ConstructResponse:
        self.monitor.preview = preview
        self.monitor.made.clear()
        given = struct_pb2.Struct()
        given.update(dict(inputs))
        request = provider_pb2.ConstructRequest(
            project="p", stack="dev", type=f"trainstack:index:{component}", name=name, inputs=given,
            monitorEndpoint=self._address, dryRun=preview, parallel=8, **options,
        )  # fmt: skip
        made: provider_pb2.ConstructResponse = self.stub.Construct(request, timeout=60)
        return made


def output(value: Any = None, *, secret: bool = False) -> dict[str, Any]:
    """An output in the form of the protocol; without a value it is unknown."""
    found: dict[str, Any] = {_SIGNATURE: _OUTPUT, "secret": secret, "dependencies": []}
    return {**found, "value": value} if value is not None else found


FOLDER = (sys.executable, str(ROOT / "plugin"))
"""Command that starts the plugin as the Python language host does."""


@contextmanager
def plugin(*command: str, **options: Any) -> Iterator[Plugin]:
    """Run the plugin as an engine does: a process whose first line is its port."""
    monitor, server = Monitor(), grpc.server(ThreadPoolExecutor(8))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
    engine_pb2_grpc.add_EngineServicer_to_server(monitor, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    process = subprocess.Popen(
        [*command, address], stdout=subprocess.PIPE, text=True, **{"cwd": ROOT.anchor, **options}
    )
    try:
        assert process.stdout
        with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
            yield Plugin(provider_pb2_grpc.ResourceProviderStub(channel), monitor, address)
    finally:
        process.terminate()
        process.wait(10)
        server.stop(None)
