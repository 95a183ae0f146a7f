"""A cloud that says yes and remembers what it was asked for, to run components without an engine."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pulumi
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime import MockCallArgs, MockResourceArgs, Mocks, mocks, resource, rpc, set_mocks
from pulumi.runtime.proto.source_pb2 import StackTrace
from pulumi.runtime.sync_await import _sync_await

from stacks import sdk

ACCOUNT = "111122223333"
REGION = "eu-central-1"
_KEY = "aws:kms/getKey:getKey"
_STATE = "pulumi:pulumi:readStackOutputs"
_GROUPS = "aws:autoscaling/getAmiIds:getAmiIds"
_LOGS = "aws:cloudwatch/getLogGroups:getLogGroups"
_SECRET = "aws:secretsmanager/getSecretVersion:getSecretVersion"
_SECRET_OF_GOOGLE = "gcp:secretmanager/getSecretVersionAccess:getSecretVersionAccess"
_PROJECT = "gcp:organizations/getProject:getProject"
_STORAGE_AGENT = "gcp:storage/getProjectServiceAccount:getProjectServiceAccount"

# A stack trace of every resource is a third of the time, and is for the engine's messages alone.
resource._get_stack_trace = StackTrace
sdk.without_debug_messages()
sdk.with_short_searches()
sdk.with_short_checks()


@dataclass(frozen=True)
class Asked:
    """One resource as it reached the provider: token, name, properties under their wire names."""

    type: str
    name: str
    properties: Mapping[str, Any]
    provider: str


@dataclass
class Recorder(Mocks):
    """Remembers every resource; `computed` adds outputs per type token."""

    computed: Mapping[str, Callable[[MockResourceArgs], Mapping[str, object]]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    answers: Mapping[str, Callable[[Any], Mapping[str, object]]] = field(
        default_factory=lambda: {
            _GROUPS: lambda _: {"id": REGION, "names": [], "arns": []},
            _LOGS: lambda _: {"id": REGION, "logGroupNames": [], "arns": []},
            _KEY: lambda args: {"id": "key-0", "arn": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{args['keyId']}"},
            _STATE: lambda args: {"name": args["name"], "outputs": {}},
            _PROJECT: lambda args: {
                "id": args["projectId"],
                "number": "123456789012",
                "projectId": args["projectId"],
            },
            _STORAGE_AGENT: lambda args: {
                "id": "agent",
                "member": f"serviceAccount:{args['project']}@gs-project-accounts.iam.gserviceaccount.com",
            },
            _SECRET: lambda args: {"id": args["secretId"], "secretString": f"value of {args['secretId']}"},
            _SECRET_OF_GOOGLE: lambda args: {**args, "id": "1", "secretData": f"value of {args['secret']}"},
        }
    )
    """What functions say, by token. By default nothing of the stack exists before it is deployed."""

    def new_resource(self, args: MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        self.asked.append(Asked(args.typ, args.name, args.inputs, args.provider or ""))
        service = args.typ.split("/")[0].split(":")[-1]
        outputs = {
            "arn": f"arn:aws:{service}:{REGION}:{ACCOUNT}:{args.name}",
            "name": args.name,
            "bucket": args.name,
            "keyId": f"{args.name}-key",
            **args.inputs,
        }
        if args.typ in self.computed:
            outputs |= self.computed[args.typ](args)
        return f"{args.name}-id", outputs

    def call(self, args: MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        if args.token == "aws:index/getCallerIdentity:getCallerIdentity":
            caller = {"accountId": ACCOUNT, "arn": f"arn:aws:iam::{ACCOUNT}:user/tester", "id": ACCOUNT}
            return caller, []
        if args.token in self.answers:
            return dict(self.answers[args.token](args.args)), []
        raise AssertionError(f"unexpected call of {args.token}")

    def of_type(self, token: str) -> list[Asked]:
        """Everything of this type, in no particular order."""
        return [asked for asked in self.asked if asked.type == token]

    def one(self, token: str, ending: str = "") -> Asked:
        """The only resource of this type whose name ends so."""
        found = [asked for asked in self.of_type(token) if asked.name.endswith(ending)]
        assert len(found) == 1, f"{token} *{ending}: {[asked.name for asked in self.of_type(token)]}"
        return found[0]

    def types(self) -> set[str]:
        """All types asked for, components included."""
        return {asked.type for asked in self.asked}


def deploy(
    program: Callable[[], Mapping[str, pulumi.Output[Any]]],
    computed: Mapping[str, Callable[[MockResourceArgs], Mapping[str, object]]] | None = None,
) -> tuple[Recorder, dict[str, Any]]:
    """Run `program` against a fresh recorder; what it was asked for, and the resolved outputs."""
    recorder = Recorder(computed or {})
    set_mocks(recorder, project="trainstack", stack="dev", preview=False)
    resolved: dict[str, Any] = {}

    def run() -> pulumi.Output[None]:
        return pulumi.Output.all(**program()).apply(resolved.update)

    until_settled(run)
    return recorder, resolved


def until_settled(program: Callable[[], object]) -> None:
    """Run a program and wait for all that it asked a recorder for.

    For each question the SDK has a thread wait, for engines take their time. A recorder takes none: without
    threads, a stack is composed in a sixth less.
    """
    wait: Any = pulumi.runtime.test  # Pulumi leaves it untyped
    with (
        mock.patch.object(asyncio.BaseEventLoop, "run_in_executor", _at_once),
        mock.patch.object(mocks, "rpc", _Rpc),
        mock.patch.object(mocks, "_sync_await", _waited),
    ):
        wait(program)()


class _Rpc:
    """The SDK's module as its recorder uses it; answers of plain values are written without an event loop."""

    deserialize_properties = staticmethod(rpc.deserialize_properties)

    @staticmethod
    def serialize_properties(values: dict[str, Any], dependencies: dict[str, Any]) -> object:
        if not _plain(values):
            return rpc.serialize_properties(values, dependencies)
        answer = Struct()
        answer.update({name: value for name, value in values.items() if value is not None})
        return answer


def _plain(value: object) -> bool:
    if type(value) is dict:
        return all(type(name) is str and _plain(item) for name, item in value.items())
    if type(value) is list:
        return all(map(_plain, value))
    return value is None or type(value) in (str, int, float, bool)


def _waited(coming: Any) -> object:
    return coming if isinstance(coming, Struct) else _sync_await(coming)


def _at_once(loop: asyncio.AbstractEventLoop, _pool: object, ask: Callable[..., Any], *args: Any) -> Any:
    answer = loop.create_future()
    try:
        answer.set_result(ask(*args))
    except Exception as error:
        answer.set_exception(error)
    return answer


def statements(policy: str | Mapping[str, Any]) -> dict[str, Any]:
    """The statements of a policy document by their Sid."""
    document = json.loads(policy) if isinstance(policy, str) else policy
    return {statement["Sid"]: statement for statement in document["Statement"]}


def rules(recorder: Recorder, direction: str) -> Iterable[tuple[str, str, str, float | None, float | None]]:
    """Security group rules as (group, peer, protocol, first port, last port); direction Ingress or Egress."""
    token = f"aws:vpc/securityGroup{direction}Rule:SecurityGroup{direction}Rule"
    for asked in recorder.of_type(token):
        p = asked.properties
        yield (
            p["securityGroupId"],
            p["referencedSecurityGroupId"],
            p["ipProtocol"],
            p.get("fromPort"),
            p.get("toPort"),
        )
