"""Serve the policies to the Pulumi engine, in the protocol of its analyzers (proto/pulumi/analyzer.proto).

Without the `pulumi-policy` SDK: see docs/adr/0025-a-policy-pack-that-speaks-the-protocol.md.
"""

import datetime
import gc
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2
from google.protobuf.message_factory import GetMessageClass
from pulumi.runtime.proto import analyzer_pb2, plugin_pb2

from infra.engine.peers import loopback_server
from infra.errors import Problem, UserError
from policies import facts
from policies.judge import Judge
from policies.pack.dispatcher import AUDIT, POLICIES, EnginePolicy, PackFinding, PackResponse, PolicyPack
from policies.sources.engine import Row

_LEVEL = analyzer_pb2.EnforcementLevel
_TYPES = {
    "resource": analyzer_pb2.PolicyType.POLICY_TYPE_RESOURCE,
    "stack": analyzer_pb2.PolicyType.POLICY_TYPE_STACK,
}
_ALL = (*POLICIES.values(), AUDIT)
_NAME = "trainstack"
_SETTINGS = {
    "config": {"type": "string", "description": "Settings and enforcement: see docs/reference/policies.md."},
    "environment": {"type": "string", "description": "One of the environments of the configuration."},
    "waivers": {"type": "string", "description": "Waiver file: see docs/how-to/waivers.md."},
}


class Analyzer:
    """Analyzer service for one engine and one stack; calls are concurrent.

    `Remediate` is not implemented: only the owner changes a program. The engine calls it per resource, and
    treats "not implemented" as no change (pkg/resource/plugin/analyzer_plugin.go of 3.259.0), which takes
    less than half of the time of an empty response.
    """

    def __init__(self) -> None:
        self._pack = PolicyPack()
        self._levels: Mapping[str, analyzer_pb2.EnforcementLevel.ValueType] = {}
        self._providers: dict[bytes, Row] = {}
        self._lock = threading.Lock()

    def Handshake(
        self, request: analyzer_pb2.AnalyzerHandshakeRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzerHandshakeResponse:
        """Nothing to negotiate."""
        return analyzer_pb2.AnalyzerHandshakeResponse()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        """Empty: the engine reads version and description from PulumiPolicy.yaml."""
        return plugin_pb2.PluginInfo()

    def GetAnalyzerInfo(
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzerInfo:
        """The policies of the pack."""
        return analyzer_pb2.AnalyzerInfo(
            name=_NAME, supportsConfig=True, policies=[_described(policy) for policy in _ALL]
        )

    def Configure(
        self, request: analyzer_pb2.ConfigureAnalyzerRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        """Set the enforcement levels, and read the files in the configuration of the policy `audit`."""
        configured = request.policyConfig
        self._levels = {name: one.enforcementLevel for name, one in configured.items()}
        given = _object(configured[AUDIT.name].properties) if AUDIT.name in configured else {}
        try:
            _check_names(configured, given)
            files = {key: _project() / given[key] for key in ("config", "waivers") if key in given}
            today, environment = datetime.date.today(), given.get("environment")
            judge = Judge.read(files.get("config"), files.get("waivers"), today, environment)
            self._pack = PolicyPack(judge, self._pack.resources)
        except UserError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return empty_pb2.Empty()

    def ConfigureStack(
        self, request: analyzer_pb2.AnalyzerStackConfigureRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzerStackConfigureResponse:
        """Note whether this is a preview."""
        self._pack.resources.planned = request.dry_run
        return analyzer_pb2.AnalyzerStackConfigureResponse()

    def Analyze(
        self, request: analyzer_pb2.AnalyzeRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzeResponse:
        """Judge one resource before its step."""
        with self._lock:
            return self._written(self._pack.before(self._row(request)))

    def AnalyzeStack(
        self, request: analyzer_pb2.AnalyzeStackRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzeResponse:
        """Judge all resources, after the last step."""
        with self._lock:
            return self._written(self._pack.after([self._row(one) for one in request.resources]))

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Nothing to cancel."""
        return empty_pb2.Empty()

    def _written(self, answer: PackResponse) -> analyzer_pb2.AnalyzeResponse:
        return analyzer_pb2.AnalyzeResponse(
            diagnostics=[self._diagnostic(one) for one in answer.findings if self._is_shown(one)],
            not_applicable=[
                analyzer_pb2.PolicyNotApplicable(policy_name=policy.name, reason="no rule judges it")
                for policy in answer.idle
            ],
        )

    def _row(self, resource: analyzer_pb2.AnalyzeRequest | analyzer_pb2.AnalyzerResource) -> Row:
        row: dict[str, Any] = {
            "urn": resource.urn,
            "type": resource.type,
            "parent": resource.options.parent,
            "protect": resource.options.protect,
            "properties": _object(resource.properties),
        }
        if resource.provider.urn:
            # The engine passes it with every resource, and that of Kubernetes has a long setting.
            serialized = resource.provider.SerializeToString()
            if serialized not in self._providers:
                given = _object(resource.provider.properties)
                made = {"urn": resource.provider.urn, "type": resource.provider.type, "properties": given}
                self._providers[serialized] = made
            row["provider"] = self._providers[serialized]
        if isinstance(resource, analyzer_pb2.AnalyzerResource):
            row["dependencies"] = list(resource.dependencies)
            named = resource.propertyDependencies.items()
            row["propertyDependencies"] = {key: list(one.urns) for key, one in named}
        return row

    def _is_shown(self, finding: PackFinding) -> bool:
        """Return whether its policy is enabled and no equally strict one has reported it."""
        level, before = self._level(finding.policy), finding.repeats
        return level != _LEVEL.DISABLED and (before is None or self._level(before) != level)

    def _level(self, policy: EnginePolicy) -> analyzer_pb2.EnforcementLevel.ValueType:
        return self._levels.get(policy.name, _usual(policy))

    def _diagnostic(self, finding: PackFinding) -> analyzer_pb2.AnalyzeDiagnostic:
        policy = finding.policy
        return analyzer_pb2.AnalyzeDiagnostic(
            policyName=policy.name,
            policyPackName=_NAME,
            description=policy.title,
            message=finding.message,
            urn=finding.urn,
            severity=_severity(policy),
            enforcementLevel=_LEVEL.ADVISORY if finding.advisory else self._level(policy),
        )


def _check_names(policies: Iterable[str], settings: Iterable[str]) -> None:
    """Raise UserError for unknown names, which the engine accepts: their level would have no effect."""
    names, keys = [policy.name for policy in _ALL], list(_SETTINGS)
    every = "all"  # the engine applies its level to each policy, and passes the name as well
    problems = [
        Problem(
            f"policy {name}",
            None,
            "is not in the pack",
            f"It has {', '.join(names)}.",
            code="pack-unknown-policy",
        )
        for name in policies
        if name not in (*names, every)
    ]
    problems += [
        Problem(
            f"policy {AUDIT.name}: {key}",
            None,
            "is no setting",
            f"It has {' and '.join(keys)}.",
            code="pack-unknown-setting",
        )
        for key in settings
        if key not in keys
    ]
    if problems:
        raise UserError(problems)


def _usual(policy: EnginePolicy) -> analyzer_pb2.EnforcementLevel.ValueType:
    return _LEVEL.ADVISORY if policy is AUDIT else _LEVEL.MANDATORY


def _severity(policy: EnginePolicy) -> analyzer_pb2.PolicySeverity.ValueType:
    return analyzer_pb2.PolicySeverity.Value(f"POLICY_SEVERITY_{policy.severity.upper()}")


def _described(policy: EnginePolicy) -> analyzer_pb2.PolicyInfo:
    made = analyzer_pb2.PolicyInfo(
        name=policy.name,
        description=policy.title,
        enforcementLevel=_usual(policy),
        policy_type=_TYPES[policy.scope],
        severity=_severity(policy),
    )
    if policy is AUDIT:
        made.configSchema.properties.update(_SETTINGS)
    return made


def _object(struct: struct_pb2.Struct) -> dict[str, Any]:
    return {key: _value(value) for key, value in struct.fields.items()}


def _value(value: struct_pb2.Value) -> Any:
    """A JSON value; whole numbers are `int`, as in states."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _object(value.struct_value)
    if kind == "list_value":
        return [_value(one) for one in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    return None if kind in ("null_value", None) else getattr(value, kind)


def _project() -> Path:
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / "Pulumi.yaml").exists()), here)


def _handler(analyzer: Analyzer) -> grpc.GenericRpcHandler:
    """Handler of the implemented methods; the generated code would need all of them."""
    service = analyzer_pb2.DESCRIPTOR.services_by_name["Analyzer"]
    answered = {
        method.name: grpc.unary_unary_rpc_method_handler(
            getattr(analyzer, method.name),
            GetMessageClass(method.input_type).FromString,
            GetMessageClass(method.output_type).SerializeToString,
        )
        for method in service.methods
        if hasattr(analyzer, method.name)
    }
    return grpc.method_handlers_generic_handler(service.full_name, answered)


def serve() -> None:
    """Serve until the engine ends this process. Its first line of output is the port."""
    server, port = loopback_server(8)
    server.add_generic_rpc_handlers([_handler(Analyzer())])
    server.start()
    print(port, flush=True)  # noqa: T201 - the protocol
    # The program takes seconds to start, without requests meanwhile.
    facts.prepare()
    # Objects created so far live until the end; few others are created.
    gc.freeze()
    gc.enable()
    server.wait_for_termination()
