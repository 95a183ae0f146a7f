"""The program that makes the keys of a Slurm system: once, in Secrets alone."""

import base64
from typing import Any

import pytest

from agents.shared.api_server import ApiServer, Object
from agents.waiting import slurm_secrets


class Server(ApiServer):
    """An API server that gives one answer, and keeps what it was sent."""

    def __init__(self, status: int) -> None:
        self.status, self.sent = status, list[Any]()

    def ask(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        self.sent.append((method, path, body))
        return self.status, {}


def test_keys_are_long_enough_and_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(201)
    made, said = slurm_secrets.make(server, "slurm", 5)
    assert made
    data = {body["metadata"]["name"]: body["data"] for _, _, body in server.sent}
    assert set(data) == {"slurm-key", "slurm-jwt", "slurm-database"}
    assert len(base64.b64decode(data["slurm-key"]["slurm.key"])) == 1024
    assert len(base64.b64decode(data["slurm-jwt"]["jwt.key"])) >= 32
    printed = said + capsys.readouterr().out
    assert not any(text in printed for values in data.values() for text in values.values())


def test_other_values_are_made_each_time() -> None:
    assert slurm_secrets.bodies("slurm") != slurm_secrets.bodies("slurm")


def test_existing_ones_stay() -> None:
    server = Server(409)
    made, _ = slurm_secrets.make(server, "slurm", 5)
    assert made and len(server.sent) == 3
