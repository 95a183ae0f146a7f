"""The deployment reaches the API of its cluster, or nothing is begun."""

from tests.trainstack.preflight.aws.asking import STACK, Cloud, account, asked
from trainstack.preflight.answers import State
from trainstack.preflight.aws import way_in
from trainstack.preflight.machine import LocalMachine

HOST = "0123.gr7.us-east-1.eks.amazonaws.com"


def none_yet() -> Cloud:
    return Cloud().refuses("eks", "describe_cluster", "ResourceNotFoundException", "No cluster found")


def at(address: str) -> LocalMachine:
    return LocalMachine(address=lambda: address)


def unreachable() -> str:
    raise OSError("no route to host")


def test_a_private_api_of_a_network_that_does_not_exist_yet() -> None:
    (answer,) = asked(way_in.api, account(none_yet(), at("198.51.100.7"), layout__api_access=[]))
    assert answer.state is State.SHORT
    assert "layout.api_access" in answer.fix


def test_this_machine_is_within_the_ranges_that_may_reach_it() -> None:
    (answer,) = asked(way_in.api, account(none_yet(), at("198.51.100.7")))
    assert answer.state is State.READY


def test_this_machine_is_not_within_them() -> None:
    (answer,) = asked(way_in.api, account(none_yet(), at("203.0.113.9")))
    assert answer.state is State.SHORT and "203.0.113.9/32" in answer.fix


def test_an_address_that_cannot_be_found_out_is_unknown() -> None:
    (answer,) = asked(way_in.api, account(none_yet(), LocalMachine(address=unreachable)))
    assert answer.state is State.UNKNOWN
    (answer,) = asked(way_in.api, account(none_yet(), at("<html>")))
    assert answer.state is State.UNKNOWN


def test_of_a_cluster_that_exists_the_api_is_tried() -> None:
    tried = []

    def connects(host: str, port: int) -> bool:
        tried.append((host, port))
        return len(tried) == 1

    for state in (State.READY, State.SHORT):
        cloud = Cloud().answers(
            "eks", "describe_cluster", {"cluster": {"endpoint": f"https://{HOST}"}}, name=STACK
        )
        (answer,) = asked(way_in.api, account(cloud, LocalMachine(connects=connects), layout__api_access=[]))
        assert answer.state is state
    assert tried == [(HOST, 443)] * 2


def test_the_cli_by_which_the_deployment_logs_in() -> None:
    found = asked(way_in.program, account(Cloud(), LocalMachine(finds=lambda _: "/usr/bin/aws")))
    missing = asked(way_in.program, account(Cloud(), LocalMachine(finds=lambda _: None)))
    assert [answer.state for answer in (*found, *missing)] == [State.READY, State.SHORT]
