"""An emulated account, and answers of our own for what the emulation lacks or never refuses."""

import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import boto3
from moto import mock_aws
from moto.core import routing

Answer = Callable[[Mapping[str, Any]], Any]
REGION = "us-east-1"
KEYS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
# Operations that moto 5.2.5 does not know.
LACKING = (
    "autoscaling.DescribeScheduledActions",
    "budgets.DescribeBudgetActionsForAccount",
    "ce.GetAnomalyMonitors",
    "ce.GetAnomalySubscriptions",
    "dynamodb.ListGlobalTables",
    "ec2.DescribeCapacityReservations",
    "ec2.DescribePlacementGroups",
    "ec2.GetInstanceMetadataDefaults",
    "efs.DescribeReplicationConfigurations",
    "eks.ListAccessEntries",
    "eks.ListAddons",
    "eks.ListCapabilities",
    "eks.ListPodIdentityAssociations",
    "fsx.DescribeDataRepositoryAssociations",
)


def denied(_: Mapping[str, Any]) -> Any:
    """What a service says to who has not the right."""
    raise_with = {"Error": {"Code": "AccessDeniedException", "Message": "no identity-based policy allows it"}}
    return 403, raise_with


class Account:
    """Clients of an emulated account; `said` answers for an operation such as `ec2.DescribeVolumes`."""

    def __init__(self, said: Mapping[str, Answer] | None = None) -> None:
        self.said: dict[str, Answer] = {**{name: lambda _: (200, {}) for name in LACKING}, **(said or {})}
        self.asked: list[str] = []

    def __call__(self, service: str, region: str) -> Any:
        client = made(service, region)
        _NOW[0] = self
        return client

    def answer(self, name: str, params: Mapping[str, Any]) -> Any:
        """What is said instead of asking the emulation; None where it is asked."""
        self.asked.append(name)
        if name not in self.said:
            return None
        status, said = self.said[name](params)
        return SimpleNamespace(status_code=status), said


_NOW: list[Account] = [Account()]
_MAPPING, _map = threading.Lock(), routing._create_map
_SESSION = boto3.Session(**KEYS)


@functools.cache
def made(service: str, region: str) -> Any:
    """A client that asks the latest Account first; kept, for clients take long to make."""
    client = _SESSION.client(service, region_name=region)
    hyphenated = client.meta.service_model.service_id.hyphenize()

    def handle(model: Any, params: Mapping[str, Any], **_: Any) -> Any:
        return _NOW[0].answer(f"{service}.{model.name}", params)

    def whole(params: dict[str, Any], **_: Any) -> None:
        """moto 5.2.5 returns 15 launch templates, without a token for more (ec2/responses)."""
        params.setdefault("MaxResults", 200)

    client.meta.events.register(f"before-call.{hyphenated}", handle)
    client.meta.events.register("before-parameter-build.ec2.DescribeLaunchTemplates", whole)
    return client


def _map_alone(rules: list[Any]) -> Any:
    """Services are asked by several threads, and Python 3.11 cannot parse in two of them (cpython#106905)."""
    with _MAPPING:
        return _map(rules)


@contextmanager
def emulated() -> Iterator[Callable[[str], Any]]:
    """An empty account; gives clients to fill it with."""
    # moto makes 1,300 images of machines for each empty account, twice: two thirds of the time of a test.
    fewer = mock.patch.dict(os.environ, MOTO_EC2_LOAD_DEFAULT_AMIS="false")
    with fewer, mock.patch.object(routing, "_create_map", _map_alone), mock_aws() as made_up:
        made_up.reset()  # where a module keeps the emulation on: that takes half the time of a small test
        _NOW[0] = Account()
        yield lambda service: made(service, REGION)
