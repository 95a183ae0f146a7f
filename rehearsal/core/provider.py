"""The gRPC provider that serves the engine for one provider instance, on top of an emulated cloud."""

import functools
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import grpc
from google.protobuf import empty_pb2, struct_pb2
from grpc import ServicerContext
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, provider_pb2_grpc
from pulumi.runtime.proto import provider_pb2 as pb

from rehearsal.core import engine_messages
from rehearsal.core.model import (
    UNKNOWN,
    Call,
    EmulatedCloud,
    InitFailedError,
    Properties,
    ProviderInstance,
    RefusalError,
)
from rehearsal.core.packages import PACKAGES
from rehearsal.core.rules import pinning
from rehearsal.core.wire import from_struct, to_struct

_LOG = logging.getLogger("rehearsal")
_SEVERITIES = {
    "debug": engine_pb2.DEBUG,
    "info": engine_pb2.INFO,
    "status": engine_pb2.INFO,
    "warning": engine_pb2.WARNING,
    "error": engine_pb2.ERROR,
}
_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Method = Callable[["Provider", _Request, ServicerContext], _Response]


def _guarded(method: _Method[_Request, _Response]) -> _Method[_Request, _Response]:
    """Map exceptions of a cloud to gRPC errors for the engine; log our own bugs in full."""

    @functools.wraps(method)
    def call(self: "Provider", request: _Request, context: ServicerContext) -> _Response:
        try:
            with self._working():
                return method(self, request, context)
        except RefusalError as refusal:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refusal))
        except InitFailedError as failed:
            details = engine_messages.init_failed(failed, self._with_id(failed.id, failed.outputs))
            context.set_trailing_metadata((("grpc-status-details-bin", details),))
            context.abort(grpc.StatusCode.UNKNOWN, str(failed))
        except Exception as error:
            if not context.is_active():
                raise
            about = getattr(request, "urn", "") or getattr(request, "tok", "")
            _LOG.exception("%s %s", method.__name__, about)
            context.abort(
                grpc.StatusCode.INTERNAL,
                f"the rehearsal itself failed in {method.__name__} ({type(error).__name__}: {error}); "
                f"this is a bug, details are in {self.log_file}",
            )

    return call


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """One configured provider of one engine. `environment` and `folder` are those of its plugin process."""

    def __init__(
        self, cloud: EmulatedCloud, environment: Mapping[str, str], log_file: str, folder: str = ""
    ) -> None:
        self.log_file, self._folder = log_file, folder
        self._cloud, self._package = cloud, PACKAGES[cloud.package]
        self._environment = environment
        self._instance = ProviderInstance(cloud.package, self._defaults({}))
        self._cancelled = threading.Event()
        self._engine_address = ""
        self._engine: engine_pb2_grpc.EngineStub | None = None
        self._ended = False
        self._requests = 0
        self._changed = threading.Condition()

    def end(self) -> None:
        """Cancel waiting requests and refuse new ones: the engine is gone."""
        self._cancelled.set()
        with self._changed:
            self._ended = True

    def wait_until_quiet(self) -> None:
        """Return when no request is in progress."""
        with self._changed:
            self._changed.wait_for(lambda: self._requests == 0)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Count a request as in progress. Raises RefusalError for an engine that is gone."""
        with self._changed:
            if self._ended:
                raise RefusalError("RequestCanceled", "the engine of this request is gone")
            self._requests += 1
        try:
            yield
        finally:
            with self._changed:
                self._requests -= 1
                self._changed.notify_all()

    def _defaults(self, config: Properties) -> Properties:
        filled = dict(config)
        for name, variables in self._package.environment.items():
            given = next((self._environment[key] for key in variables if self._environment.get(key)), None)
            if given is not None and filled.get(name) is None:
                filled[name] = given
        return filled

    def _call(self, urn: str, type: str, timeout: float = 0.0, seed: bytes = b"") -> Call:
        def log(severity: str, message: str) -> None:
            self._log(severity, message, urn)

        return Call(
            self._instance, self._cloud.canonical(type), urn, self._cancelled, log, timeout or None, seed
        )

    def _with_id(self, identifier: object, outputs: Properties) -> struct_pb2.Struct:
        """The outputs as the engine receives them."""
        known = {"id": identifier} if self._package.bridged else {}
        return to_struct({**outputs, **known})

    def _given(self, properties: struct_pb2.Struct) -> Properties:
        """Inputs of a resource; relative paths of assets begin in the folder of the program."""
        return from_struct(properties, self._folder)

    def _own(self, outputs: struct_pb2.Struct) -> Properties:
        """Outputs in the state of the engine, as the cloud returned them."""
        found = self._given(outputs)
        if self._package.bridged:
            found.pop("id", None)
        return found

    def _log(self, severity: str, message: str, urn: str) -> None:
        """Show a message beside a resource; ignore an engine that is gone."""
        if self._engine is None:
            if not self._engine_address:
                return
            self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(self._engine_address))
        request = engine_pb2.LogRequest(
            severity=_SEVERITIES[severity], message=message, urn=urn, ephemeral=severity == "status"
        )
        try:
            self._engine.Log(request, timeout=5)
        except grpc.RpcError as error:
            _LOG.debug("the engine did not accept a message: %s", error)

    # -- the provider itself ---------------------------------------------------------------------------

    @_guarded
    def Handshake(
        self, request: pb.ProviderHandshakeRequest, context: ServicerContext
    ) -> pb.ProviderHandshakeResponse:
        """Decline secrets, references and output values: the engine marks results itself."""
        self._engine_address = request.engine_address
        return pb.ProviderHandshakeResponse(supports_autonaming_configuration=False)

    @_guarded
    def Attach(self, request: plugin_pb2.PluginAttach, context: ServicerContext) -> empty_pb2.Empty:
        """Store the address of an engine that did not start this plugin."""
        self._engine_address = request.address
        return empty_pb2.Empty()

    @_guarded
    def GetPluginInfo(self, request: empty_pb2.Empty, context: ServicerContext) -> plugin_pb2.PluginInfo:
        """Report the version that the installed SDK requires."""
        return plugin_pb2.PluginInfo(version=self._cloud.version)

    def GetSchema(self, request: pb.GetSchemaRequest, context: ServicerContext) -> pb.GetSchemaResponse:
        """Not implemented: the emulation reads the SDK's type hints and has no package schema."""
        text = "an emulated provider has no package schema; `pulumi import` needs --generate-code=false here"
        context.abort(grpc.StatusCode.UNIMPLEMENTED, text)

    @_guarded
    def CheckConfig(self, request: pb.CheckRequest, context: ServicerContext) -> pb.CheckResponse:
        """Validate the provider's settings."""
        given = from_struct(request.news)
        failures = engine_messages.check_failures(self._cloud.check_config(self._defaults(given)), given, "")
        return pb.CheckResponse(inputs=request.news, failures=failures)

    @_guarded
    def DiffConfig(self, request: pb.DiffRequest, context: ServicerContext) -> pb.DiffResponse:
        """Compare a provider's settings; some changes replace every resource of the provider."""
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        if old == new:
            return pb.DiffResponse(changes=pb.DiffResponse.DIFF_NONE)
        replaces = self._cloud.replacing_settings(old, new)
        return pb.DiffResponse(changes=pb.DiffResponse.DIFF_SOME, replaces=replaces)

    @_guarded
    def Configure(self, request: pb.ConfigureRequest, context: ServicerContext) -> pb.ConfigureResponse:
        """Store the settings of this instance."""
        self._instance = ProviderInstance(self._cloud.package, self._defaults(from_struct(request.args)))
        other = pinning.note(self._cloud.package, self._instance.pinned, self._cloud.version)
        if other:
            self._log("info", other, request.urn or "")
        return pb.ConfigureResponse(supportsPreview=True)

    @_guarded
    def Cancel(self, request: empty_pb2.Empty, context: ServicerContext) -> empty_pb2.Empty:
        """Cancel waiting requests; the engine also calls this before every orderly shutdown."""
        self._cancelled.set()
        return empty_pb2.Empty()

    # -- resources -------------------------------------------------------------------------------------

    @_guarded
    def Check(self, request: pb.CheckRequest, context: ServicerContext) -> pb.CheckResponse:
        """Return the inputs with defaults, and all their problems."""
        call = self._call(request.urn, request.type, seed=request.randomSeed)
        old = self._given(request.olds) if request.olds.fields else None
        given = self._given(request.news)
        inputs, found = self._cloud.check(call, old, given)
        failures = engine_messages.check_failures(found, given, call.name)
        return pb.CheckResponse(inputs=to_struct(inputs), failures=failures)

    @_guarded
    def Diff(self, request: pb.DiffRequest, context: ServicerContext) -> pb.DiffResponse:
        """Return the changes of an update."""
        old, new = self._given(request.old_inputs), self._given(request.news)
        call = self._call(request.urn, request.type)
        diff = self._cloud.diff(call, request.id, old, self._own(request.olds), new)
        return engine_messages.diff(diff, old, new)

    @_guarded
    def Create(self, request: pb.CreateRequest, context: ServicerContext) -> pb.CreateResponse:
        """Create, or in a preview predict the outputs."""
        call = self._call(request.urn, request.type, request.timeout)
        inputs = self._given(request.properties)
        identifier, outputs = self._cloud.create(call, inputs, preview=request.preview)
        properties = self._with_id(identifier or UNKNOWN, outputs)
        return pb.CreateResponse(id=identifier, properties=properties)

    @_guarded
    def Read(self, request: pb.ReadRequest, context: ServicerContext) -> pb.ReadResponse:
        """Return the present state of a resource; an empty response when it is gone."""
        call = replace(self._call(request.urn, request.type), remembered=self._own(request.properties))
        found = self._cloud.read(call, request.id, self._given(request.inputs))
        if found is None:
            return pb.ReadResponse()
        inputs, outputs = found
        key = str(outputs.get("id") or request.id) if self._package.bridged else request.id
        return pb.ReadResponse(id=key, inputs=to_struct(inputs), properties=self._with_id(key, outputs))

    @_guarded
    def Update(self, request: pb.UpdateRequest, context: ServicerContext) -> pb.UpdateResponse:
        """Update in place."""
        outputs = self._cloud.update(
            self._call(request.urn, request.type, request.timeout),
            request.id,
            self._own(request.olds),
            self._given(request.news),
            preview=request.preview,
        )
        return pb.UpdateResponse(properties=self._with_id(request.id, outputs))

    @_guarded
    def Delete(self, request: pb.DeleteRequest, context: ServicerContext) -> empty_pb2.Empty:
        """Delete; a resource that is gone already is not an error."""
        call = self._call(request.urn, request.type, request.timeout)
        self._cloud.delete(call, request.id, self._own(request.properties))
        return empty_pb2.Empty()

    @_guarded
    def Invoke(self, request: pb.InvokeRequest, context: ServicerContext) -> pb.InvokeResponse:
        """Return the result of a function."""
        result = self._cloud.invoke(self._instance, request.tok, from_struct(request.args))
        response = pb.InvokeResponse()
        getattr(response, "return").CopyFrom(to_struct(result))
        return response
