"""Resources that a stack would have, without an engine or a cloud: the program runs against a recorder.

They are what `pulumi preview` plans before a provider adds its defaults, in the form that the policies judge.
"""

import asyncio
import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import mock

import pulumi
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime import MockCallArgs, MockResourceArgs, Mocks, resource, set_mocks
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.proto.source_pb2 import StackTrace
from pulumi.runtime.rpc import UNKNOWN
from typing_extensions import override

from infra.stackspec import StackSpec
from policies.resource import Resource
from policies.sources.convert import Converter
from policies.sources.files import FileProblems
from stacks import compose, sdk
from trainstack.stamp.clouds import STAMPED

_PROVIDER = "pulumi:providers:"
_NOTHING_DEPLOYED: Mapping[str, Mapping[str, Any]] = {
    "aws:autoscaling/getAmiIds:getAmiIds": {"id": "none", "names": [], "arns": []},
    "aws:cloudwatch/getLogGroups:getLogGroups": {"id": "none", "logGroupNames": [], "arns": []},
    "pulumi:pulumi:readStackOutputs": {"outputs": {}},
}
"""Results of functions, by token, where the stack does not exist yet."""
_COMPUTED: Mapping[str, Sequence[str]] = {
    "aws:eks/cluster:Cluster": ("vpcConfig.clusterSecurityGroupId",),
    "gcp:container/cluster:Cluster": (
        "masterAuth.clusterCaCertificate",
        "controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint",
    ),
    "gcp:filestore/instance:Instance": ("networks.ipAddresses",),
}
"""Values that the cloud adds to objects of the program, by type; of a list the first item."""


class _Unused(Mocks):
    """The SDK wants one: the monitor asks it nothing."""

    @override
    def new_resource(self, args: MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        raise NotImplementedError

    @override
    def call(self, args: MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        raise NotImplementedError


class _Monitor(MockMonitor):
    """Keeps each registered resource as a row of a preview; of the cloud it knows the account alone."""

    def __init__(self, spec: StackSpec) -> None:
        super().__init__(_Unused())
        self._answers = {**_NOTHING_DEPLOYED, **STAMPED[spec.cloud].account_answers(spec)}
        self.rows: dict[str, dict[str, Any]] = {}

    @override
    def Invoke(self, request: Any) -> Any:
        if (answer := self._answers.get(request.tok)) is None:
            return resource_pb2.ResourceInvokeResponse(unknown=True)
        found = Struct()
        found.update(answer)
        return resource_pb2.ResourceInvokeResponse(**{"return": found})  # type: ignore[arg-type]  # a keyword

    @override
    def RegisterResource(self, request: Any) -> Any:
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == "pulumi:pulumi:Stack":
            return resource_pb2.RegisterResourceResponse(urn=urn)
        inputs = _plain(MessageToDict(request.object))
        is_provider = request.type.startswith(_PROVIDER)
        if is_provider and request.version:
            inputs.setdefault("version", request.version)
        self.rows[urn] = {
            "urn": urn,
            "type": request.type,
            "custom": request.custom,
            "parent": request.parent,
            "provider": request.provider or self._default_provider(request),
            "inputs": inputs,
            "protect": request.protect,
            "dependencies": [*request.dependencies],
            "propertyDependencies": {key: [*one.urns] for key, one in request.propertyDependencies.items()},
        }
        known = "planned" if is_provider else ""
        return resource_pb2.RegisterResourceResponse(urn=urn, id=known, object=_with_computed(request))

    def _default_provider(self, request: Any) -> str:
        """The provider that the engine would make for a resource that names none."""
        package = request.type.partition(":")[0]
        if not request.custom or package == "pulumi":
            return ""
        urn = self.make_urn("", f"{_PROVIDER}{package}", f"default_{request.version}")
        self.rows.setdefault(
            urn,
            {
                "urn": urn,
                "type": f"{_PROVIDER}{package}",
                "custom": True,
                "inputs": {"version": request.version},
            },
        )
        return f"{urn}::planned"


def _with_computed(request: Any) -> Struct:
    """The inputs of a resource, with values of nested objects that the cloud computes, as unknown ones.

    The SDK takes absent properties as unknown, but only on the first level.
    """
    result: Struct = request.object
    for steps in _COMPUTED.get(request.type, ()):
        *above, last = steps.split(".")
        inner = result.fields
        for step in above:
            value = inner[step]
            if value.HasField("list_value"):
                value = value.list_value.values[0]
            inner = value.struct_value.fields
        inner[last].string_value = UNKNOWN
    return result


def resources(spec: StackSpec, project: str) -> list[Resource]:
    """The planned resources of a stack. Changes settings of the SDK: for a process of its own."""
    gc.disable()  # of a second during imports and composition, in a process that lives for few of them
    resource._get_stack_trace = StackTrace  # a third of the time, for messages of an engine alone
    sdk.without_debug_messages()
    sdk.with_short_searches()
    monitor = _Monitor(spec)
    set_mocks(monitor.mocks, project=project, stack=spec.name, preview=True, monitor=monitor)
    run: Any = pulumi.runtime.test  # Pulumi leaves it untyped
    with mock.patch.object(asyncio.BaseEventLoop, "run_in_executor", _at_once):
        run(lambda: pulumi.Output.all(**compose(spec)))()
    problems = FileProblems("preview")
    converter = Converter(problems, "planned")
    for urn, row in monitor.rows.items():
        converter.add(urn, row)
    return converter.resources()


def _at_once(loop: asyncio.AbstractEventLoop, _pool: object, ask: Callable[..., Any], *args: Any) -> Any:
    """Answer in place of a thread that would wait for an engine."""
    answer = loop.create_future()
    try:
        answer.set_result(ask(*args))
    except Exception as error:
        answer.set_exception(error)
    return answer


def _plain(value: Any) -> Any:
    """Whole numbers as such: protobuf has floating-point numbers alone."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value
