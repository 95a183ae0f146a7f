"""Addresses of pods."""

import ipaddress
from pathlib import Path

from rehearsal.core.state import State
from rehearsal.workloads.addresses import Addresses


def test_addresses_are_stable_distinct_and_given_back(tmp_path: Path) -> None:
    state = State(tmp_path / "a" / "state.sqlite")
    found = Addresses(state)
    first, second = found.of("c|job|x|0"), found.of("c|job|x|1")
    assert first != second
    assert Addresses(state).of("c|job|x|0") == first
    assert all(ipaddress.ip_address(a) in ipaddress.ip_network("127.64.0.0/10") for a in (first, second))
    found.release("c|job|x|")
    assert found.of("another") == first
    state.close()


def test_rehearsals_of_one_machine_do_not_share_addresses(tmp_path: Path) -> None:
    states = [State(tmp_path / name / "state.sqlite") for name in "abc"]
    assert len({Addresses(state).of("x") for state in states}) == 3
    for state in states:
        state.close()
