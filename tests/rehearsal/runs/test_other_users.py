"""Another user of the machine has no access to a rehearsal."""

import http.client
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rehearsal import control
from rehearsal.client import Rehearsal
from rehearsal.core.state import State
from rehearsal.dataplane.aws.server import CREDENTIALS_PATH, Dataplane
from rehearsal.jobs.gcp.cloud_run.front import Backend, Front
from rehearsal.jobs.gcp.cloud_run.iap import GENERATED, IapDeniedError
from rehearsal.workloads.proxy import Proxy

OTHER_USER = 65534
# The interpreter may lie where only its owner may read: everything is imported before the user changes.
PRELUDE = """
import encodings.idna, http.client, os, socket, sys
import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
"""
CREATE = """
provider = provider_pb2_grpc.ResourceProviderStub(grpc.insecure_channel(f"127.0.0.1:{sys.argv[2]}"))
calls = {
    "Configure": provider_pb2.ConfigureRequest(args=struct_pb2.Struct()),
    "Create": provider_pb2.CreateRequest(urn="urn:pulumi:s::p::kubernetes:core/v1:ConfigMap::code"),
    "Read": provider_pb2.ReadRequest(id="x", urn="urn:pulumi:s::p::aws:ec2/vpc:Vpc::net"),
    "Invoke": provider_pb2.InvokeRequest(tok="aws:index/getRegion:getRegion"),
    "GetPluginInfo": empty_pb2.Empty(),
}
for name, request in calls.items():
    try:
        getattr(provider, name)(request, timeout=20)
        print(name, "OK")
    except grpc.RpcError as error:
        print(name, error.code().name)
"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="acting as a second user needs root")


def command(user: int, code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", PRELUDE + textwrap.dedent(code), str(user), *map(str, arguments)]


def run(user: int, code: str, *arguments: object) -> str:
    done = subprocess.run(
        command(user, code, *arguments), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("package", ["kubernetes", "aws"])
def test_a_provider_refuses_every_request_of_another_user(rehearsal: Rehearsal, package: str) -> None:
    rehearsal.environment()
    lease, answer = control.lease(rehearsal.home, {"op": "serve", "package": package, "engine": os.getpid()})
    output = run(OTHER_USER, CREATE, answer["port"]).splitlines()
    assert output == [
        f"{name} PERMISSION_DENIED" for name in ("Configure", "Create", "Read", "Invoke", "GetPluginInfo")
    ]
    assert "GetPluginInfo OK" in run(os.geteuid(), CREATE, answer["port"])
    lease.close()


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user can enter, unlike the temporary folders of tests."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def test_the_files_of_a_home_are_closed_even_where_it_was_open_before(public: Path) -> None:
    rehearsal = Rehearsal(public / "rehearsal")
    rehearsal.home.mkdir(mode=0o755)
    rehearsal.home.chmod(0o755)
    rehearsal.environment()
    rehearsal.set_faults({"faults": []})
    connection, _ = control.lease(rehearsal.home, {"op": "status"})
    connection.close()
    look = "print('closed' if not os.access(sys.argv[2], os.R_OK | os.X_OK) else os.listdir(sys.argv[2]))"
    assert run(OTHER_USER, look, rehearsal.home) == "closed"
    rehearsal.stop()


def test_the_daemon_closes_connections_of_other_users(public: Path) -> None:
    rehearsal = Rehearsal(public / "rehearsal")
    rehearsal.environment()
    # An engine that stays keeps the daemon alive.
    connection, _ = control.lease(rehearsal.home, {"op": "serve", "package": "aws", "engine": os.getpid()})
    path = control.socket_path(rehearsal.home)
    for opened in (rehearsal.home, path):
        opened.chmod(0o777)
    ask = """
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(sys.argv[2])
    try:
        sock.sendall(b'{"op": "status"}\\n')
        print(sock.recv(100) or "nothing")
    except OSError:
        print("nothing")
    """
    assert "resources" in run(os.geteuid(), ask, path)
    assert run(OTHER_USER, ask, path) == "nothing"
    connection.close()
    rehearsal.stop()


def test_another_user_in_place_of_the_daemon_gets_no_request(public: Path) -> None:
    home = public / "home"
    home.mkdir()
    home.chmod(0o777)
    listen = """
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[2])
    listener.listen()
    print("listening", flush=True)
    print(listener.accept()[0].recv(100) or "nothing", flush=True)
    """
    squatter = subprocess.Popen(
        command(OTHER_USER, listen, control.socket_path(home)), stdout=subprocess.PIPE, text=True
    )
    assert squatter.stdout is not None
    assert squatter.stdout.readline() == "listening\n"
    with pytest.raises(control.ControlError, match=f"user {OTHER_USER} listens at"):
        control.connect(home)
    assert squatter.communicate(timeout=20)[0] == "nothing\n"


def test_a_home_of_another_user_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, OTHER_USER, OTHER_USER)
    with pytest.raises(control.ControlError, match=f"user {OTHER_USER}.*TRAINSTACK_REHEARSAL_HOME"):
        Rehearsal(home).environment()


FETCH = """
connection = http.client.HTTPConnection(sys.argv[2], int(sys.argv[3]), timeout=20)
try:
    connection.request("GET", sys.argv[4])
    print(connection.getresponse().status)
except OSError:
    print("nothing")
"""


def test_the_servers_that_pods_call_close_connections_of_other_users(tmp_path: Path) -> None:
    plane = Dataplane(State(tmp_path / "state.sqlite"))
    host, _, port = plane.url.removeprefix("http://").partition(":")
    assert run(os.geteuid(), FETCH, host, port, CREDENTIALS_PATH) == "400"
    assert run(OTHER_USER, FETCH, host, port, CREDENTIALS_PATH) == "nothing"
    plane.stop()


def test_the_services_of_a_rehearsal_close_connections_of_other_users(rehearsal: Rehearsal) -> None:
    with rehearsal.serving() as environment:
        host, _, port = environment["AWS_ENDPOINT_URL_S3"].removeprefix("http://").partition(":")
        assert run(os.geteuid(), FETCH, host, port, "/") == "403"
        assert run(OTHER_USER, FETCH, host, port, "/") == "nothing"


class Pod(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def pod() -> Iterator[tuple[str, int]]:
    server = ThreadingHTTPServer(("127.64.3.3", 0), Pod)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield "127.64.3.3", server.server_address[1]
    server.shutdown()


def test_a_service_address_closes_connections_of_other_users(pod: tuple[str, int]) -> None:
    proxy = Proxy()
    proxy.open("127.64.3.4", {28080: lambda: pod})
    assert run(os.geteuid(), FETCH, "127.64.3.4", 28080, "/") == "204"
    assert run(OTHER_USER, FETCH, "127.64.3.4", 28080, "/") == "nothing"
    proxy.stop()


def test_a_service_of_cloud_run_closes_connections_of_other_users() -> None:
    def judge(_: str, __: Mapping[str, str]) -> None:
        raise IapDeniedError(302, "Invalid IAP credentials: empty token", GENERATED)

    front = Front("127.64.3.5", 28080, Backend(judge, lambda: http.client.HTTPConnection("localhost")))
    assert run(os.geteuid(), FETCH, "127.64.3.5", 28080, "/") == "302"
    assert run(OTHER_USER, FETCH, "127.64.3.5", 28080, "/") == "nothing"
    front.stop()
