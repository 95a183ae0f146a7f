"""A stack in another account is asked about by its role; the API server knows the deployer."""

from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs

import pytest

from infra.clouds.aws.login import AssumedRole, clients
from tests.trainstack.preflight.aws.asking import ACCOUNT, ME, Cloud, account, asked
from trainstack.preflight.answers import State
from trainstack.preflight.aws.identity import caller

DEPLOYS = "arn:aws:iam::210987654321:role/deploys"
_KEYS = (
    "<AccessKeyId>ASIAOTHER</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
)
_ANSWERS = {
    "AssumeRole": f"<Credentials>{_KEYS}<Expiration>2999-01-01T00:00:00Z</Expiration></Credentials>",
    "GetCallerIdentity": "<Account>210987654321</Account><Arn>a</Arn><UserId>u</UserId>",
}


class Sts(ThreadingHTTPServer):
    """STS that lets everything be assumed, and knows what it was asked and with which key."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[dict[str, str], str]] = []


class Handler(BaseHTTPRequestHandler):
    server: Sts

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: one for name, (one,) in parse_qs(text).items()}
        key = self.headers["Authorization"].partition("Credential=")[2].partition("/")[0]
        self.server.asked.append((form, key))
        name = form["Action"]
        body = f"<{name}Response><{name}Result>{_ANSWERS[name]}</{name}Result></{name}Response>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sts]:
    with Sts() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOWN")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
        yield server
        server.shutdown()


def test_requests_have_the_keys_of_the_role_which_is_assumed_once(sts: Sts) -> None:
    made = clients(role=AssumedRole(DEPLOYS, "trainstack-dev", "us-east-1", "ml-1"))
    assert not sts.asked
    for _ in range(2):
        assert made("sts", "us-east-1").get_caller_identity()["Account"] == "210987654321"
    (form, key), *others = sts.asked
    assert key == "AKIAOWN"
    assert {name: form[name] for name in ("RoleArn", "RoleSessionName", "ExternalId")} == {
        "RoleArn": DEPLOYS,
        "RoleSessionName": "trainstack-dev",
        "ExternalId": "ml-1",
    }
    assert [(one["Action"], key) for one, key in others] == [("GetCallerIdentity", "ASIAOTHER")] * 2


@pytest.mark.parametrize(("me", "state"), [("platform", State.READY), ("developer", State.SHORT)])
def test_the_administrator_is_the_deployer_and_not_the_role(me: str, state: State) -> None:
    def answering(arn: str, number: str) -> Cloud:
        found = {"Account": number, "Arn": arn, "UserId": "x"}
        return Cloud().answers("sts", "get_caller_identity", found)

    assumed = answering(f"arn:aws:sts::{ACCOUNT}:assumed-role/deploys/trainstack-dev", ACCOUNT)
    deployer = answering(ME.replace(ACCOUNT, "210987654321").replace("platform", me), "210987654321")
    admins = ["arn:aws:iam::210987654321:role/platform"]
    found = replace(account(assumed, on__admin_arns=admins), deployer=deployer)
    (answer,) = asked(caller, found)
    assert answer.state is state
