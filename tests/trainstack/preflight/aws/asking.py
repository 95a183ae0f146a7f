"""An account that answers what a test says; requests and answers are held against the services' models."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.stub import Stubber
from botocore.validate import ParamValidator

from infra import stackspec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.document import read
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.load import CONFIG
from infra.stackspec.slurm.layout import SlurmLayout
from tests.stacks.stack_files import at
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account, answered
from trainstack.preflight.machine import LocalMachine

STACK = "dev-aws"
ACCOUNT = "123456789012"
ME = f"arn:aws:sts::{ACCOUNT}:assumed-role/platform/anna"
# Where zones have names as in the catalog's offers: p4d.24xlarge is offered in b.
ZONES = {
    "us-east-1a": "use1-az6",
    "us-east-1b": "use1-az1",
    "us-east-1c": "use1-az2",
    "us-east-1e": "use1-az3",
}


class Cloud:
    """Clients with the answers that they give, in the order in which each service is asked."""

    def __init__(self) -> None:
        self._stubs: dict[str, tuple[Any, Stubber]] = {}
        self.regions: list[tuple[str, str]] = []

    def __call__(self, service: str, region: str) -> Any:
        self.regions.append((service, region))
        return self._stub(service)[0]

    def answers(self, service: str, operation: str, answer: dict[str, Any], **asked: Any) -> "Cloud":
        """The next request to the service is this one, and is answered so; `asked` is what it says."""
        self._stub(service)[1].add_response(operation, answer, asked or None)
        return self

    def refuses(self, service: str, operation: str, code: str, message: str = "") -> "Cloud":
        """The next request to the service is this one, and is refused."""
        self._stub(service)[1].add_client_error(operation, code, message)
        return self

    def zones(self) -> "Cloud":
        rows = [{"ZoneName": name, "ZoneId": key, "State": "available"} for name, key in ZONES.items()]
        return self.answers("ec2", "describe_availability_zones", {"AvailabilityZones": rows})

    def is_exhausted(self) -> bool:
        """Whether every answer was asked for."""
        for _, stub in self._stubs.values():
            stub.assert_no_pending_responses()
        return True

    def _stub(self, service: str) -> tuple[Any, Stubber]:
        if service not in self._stubs:
            keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
            client = boto3.client(service, region_name="us-east-1", **keys)
            stub = Stubber(client)
            stub.activate()
            self._stubs[service] = client, stub
        return self._stubs[service]


class Answering:
    """Clients that answer by operation, in any order; requests and answers are held against the models.

    An answer is a dictionary, a function of the request, or an exception of `refusal`. What a test does not
    name is answered with nothing in it.
    """

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, service: str, region: str) -> Any:
        keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
        client = boto3.client(service, region_name=region, **keys)
        operations = {
            client.meta.service_model.operation_model(api).name: name
            for name, api in client.meta.method_to_api_mapping.items()
        }

        def provide(params: dict[str, Any], model: Any, **_: Any) -> None:
            self.asked.append((operations[model.name], params))

        def answer(model: Any, **_: Any) -> tuple[Any, Any]:
            name, params = self.asked[-1]
            given = self.answers.get(name, {})
            if isinstance(given, Refusal):
                error = {"Error": {"Code": given.code, "Message": given.message}}
                return AWSResponse("", 400, {}, None), {**error, "ResponseMetadata": {"HTTPStatusCode": 400}}
            found = (given(params) if callable(given) else given) or _empty(model.output_shape)
            report = ParamValidator().validate(found, model.output_shape)
            assert not report.has_errors(), report.generate_report()
            return AWSResponse("", 200, {}, None), {**found, "ResponseMetadata": {"HTTPStatusCode": 200}}

        client.meta.events.register("provide-client-params.*", provide)
        client.meta.events.register("before-call.*", answer)
        return client


@dataclass(frozen=True)
class Refusal:
    """The error of a service."""

    code: str
    message: str = "no"


def _empty(shape: Any) -> dict[str, Any]:
    """Empty lists, as services send them."""
    return {name: [] for name, one in shape.members.items() if one.type_name == "list"}


def account(
    cloud: Any, machine: LocalMachine | None = None, stack: str = STACK, /, **changes: Any
) -> Account:
    """The account of a shipped stack with other values at paths such as `layout__api_access`."""
    plain = json.loads(json.dumps(read(CONFIG / f"Pulumi.{stack}.yaml", "f")))
    settings = {key.partition(":")[2]: value for key, value in plain["config"].items()}
    for path, value in changes.items():
        at(settings["spec"], path.replace("__", "."), value)
    spec = stackspec.load(stack, settings, "f").spec
    assert isinstance(spec.layout, ClusterLayout | SlurmLayout) and isinstance(spec.on, AwsSpec)
    return Account(spec, spec.layout, spec.on, cloud, machine or LocalMachine(connects=lambda *_: False))


def asked(check: Callable[[Account], Iterator[Answer]], of: Account) -> list[Answer]:
    """What a check answers, as the command makes it."""
    return list(answered("check", check, of))


def states(answers: list[Answer]) -> list[State]:
    return [answer.state for answer in answers]
