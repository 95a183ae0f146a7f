"""Serves the policies to the Pulumi engine, in the protocol of its analyzers (proto/pulumi/analyzer.proto).

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
from policies.pack.dispatcher import AUDIT, POLICIES, Answer, Finding, Pack, Policy
from policies.sources.engine import Row

_LEVEL = analyzer_pb2.EnforcementLevel
_TYPES = {
    "resource": analyzer_pb2.PolicyType.POLICY_TYPE_RESOURCE,
    "stack": analyzer_pb2.PolicyType.POLICY_TYPE_STACK,
}
_ALL = (*POLICIES.values(), AUDIT)
_NAME = "trainstack"
_SETTINGS = {
    "config": {
        "type": "string",
        "description": "Settings and rules that differ: see docs/reference/policies.md.",
    },
    "environment": {"type": "string", "description": "Which of the environments of the configuration."},
    "waivers": {
        "type": "string",
        "description": "What somebody answers for: see docs/how-to/waivers.md.",
    },
}


class Analyzer:
    """Answers one engine about one stack; it asks about several resources at once.

    There is no `Remediate`: what a program asks for is its owner's to change. The engine asks about each
    resource, and takes "not implemented" for nothing to change (pkg/resource/plugin/analyzer_plugin.go of
    3.259.0); to say so takes less than half of the time of an empty answer.
    """

    def __init__(self) -> None:
        self._pack = Pack()
        self._levels: Mapping[str, analyzer_pb2.EnforcementLevel.ValueType] = {}
        self._providers: dict[bytes, Row] = {}
        self._lock = threading.Lock()

    def Handshake(
        self, request: analyzer_pb2.AnalyzerHandshakeRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzerHandshakeResponse:
        """Nothing has to be agreed upon."""
        return analyzer_pb2.AnalyzerHandshakeResponse()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        """Nothing: the engine reads the version, as the description, in PulumiPolicy.yaml."""
        return plugin_pb2.PluginInfo()

    def GetAnalyzerInfo(
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzerInfo:
        """Which policies there are."""
        return analyzer_pb2.AnalyzerInfo(
            name=_NAME,
            supportsConfig=True,
            policies=[_described(policy) for policy in _ALL],
        )

    def Configure(
        self, request: analyzer_pb2.ConfigureAnalyzerRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        """Take the levels of enforcement, and the files that the policy `audit` names."""
        told = request.policyConfig
        self._levels = {name: one.enforcementLevel for name, one in told.items()}
        given = _object(told[AUDIT.name].properties) if AUDIT.name in told else {}
        try:
            _refuse_unknown(told, given)
            files = {key: _project() / given[key] for key in ("config", "waivers") if key in given}
            today, environment = datetime.date.today(), given.get("environment")
            judge = Judge.read(files.get("config"), files.get("waivers"), today, environment)
            self._pack = Pack(judge, self._pack.told)
        except UserError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return empty_pb2.Empty()

    def ConfigureStack(
        self, request: analyzer_pb2.AnalyzerStackConfigureRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzerStackConfigureResponse:
        """Learn whether this is a preview."""
        self._pack.told.planned = request.dry_run
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
        """Nothing goes on that could be cancelled."""
        return empty_pb2.Empty()

    def _written(self, answer: Answer) -> analyzer_pb2.AnalyzeResponse:
        return analyzer_pb2.AnalyzeResponse(
            diagnostics=[self._diagnostic(one) for one in answer.findings if self._is_told(one)],
            not_applicable=[
                analyzer_pb2.PolicyNotApplicable(policy_name=policy.name, reason="no rule is about it")
                for policy in answer.idle
            ],
        )

    def _row(self, told: analyzer_pb2.AnalyzeRequest | analyzer_pb2.AnalyzerResource) -> Row:
        """A resource as `policies.sources.engine` reads it."""
        row: dict[str, Any] = {
            "urn": told.urn,
            "type": told.type,
            "parent": told.options.parent,
            "protect": told.options.protect,
            "properties": _object(told.properties),
        }
        if told.provider.urn:
            # The engine tells it with every resource, and one of Kubernetes has a long setting.
            serialized = told.provider.SerializeToString()
            if serialized not in self._providers:
                given = _object(told.provider.properties)
                made = {"urn": told.provider.urn, "type": told.provider.type, "properties": given}
                self._providers[serialized] = made
            row["provider"] = self._providers[serialized]
        if isinstance(told, analyzer_pb2.AnalyzerResource):
            row["dependencies"] = list(told.dependencies)
            named = told.propertyDependencies.items()
            row["propertyDependencies"] = {key: list(one.urns) for key, one in named}
        return row

    def _is_told(self, finding: Finding) -> bool:
        """Whether its policy is on, and it is not said already as strictly."""
        level, before = self._level(finding.policy), finding.repeats
        return level != _LEVEL.DISABLED and (before is None or self._level(before) != level)

    def _level(self, policy: Policy) -> analyzer_pb2.EnforcementLevel.ValueType:
        return self._levels.get(policy.name, _usual(policy))

    def _diagnostic(self, finding: Finding) -> analyzer_pb2.AnalyzeDiagnostic:
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


def _refuse_unknown(policies: Iterable[str], settings: Iterable[str]) -> None:
    """The engine takes over what it does not know; a level that binds nothing would be a silent pass."""
    names, keys = [policy.name for policy in _ALL], list(_SETTINGS)
    every = "all"  # the engine gives its level to each policy, and names it as well
    problems = [
        Problem(f"policy {name}", None, "is not in the pack", f"It has {', '.join(names)}.")
        for name in policies
        if name not in (*names, every)
    ]
    problems += [
        Problem(f"policy {AUDIT.name}: {key}", None, "is no setting", f"It has {' and '.join(keys)}.")
        for key in settings
        if key not in keys
    ]
    if problems:
        raise UserError(problems)


def _usual(policy: Policy) -> analyzer_pb2.EnforcementLevel.ValueType:
    return _LEVEL.ADVISORY if policy is AUDIT else _LEVEL.MANDATORY


def _severity(policy: Policy) -> analyzer_pb2.PolicySeverity.ValueType:
    return analyzer_pb2.PolicySeverity.Value(f"POLICY_SEVERITY_{policy.severity.upper()}")


def _described(policy: Policy) -> analyzer_pb2.PolicyInfo:
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
    """A value of JSON; whole numbers are `int`, as the engine writes them into states."""
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
    """The folder of the project that the engine works on, or the one it was started in."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / "Pulumi.yaml").exists()), here)


def _handler(analyzer: Analyzer) -> grpc.GenericRpcHandler:
    """The methods of the service that an analyzer has; the generated code would have all of them."""
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
    # The program takes seconds to start, and nothing is asked meanwhile.
    facts.prepare()
    # What is there now stays to the end; of the rest, little is made again and again.
    gc.freeze()
    gc.enable()
    server.wait_for_termination()
