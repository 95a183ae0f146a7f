"""The language host for a Pulumi CLI that was built from source, which has none.

The CLI starts `pulumi-language-python` (a launcher of this module, put beside the CLI by
`infra.engine.install`), reads a port from its first line of output and requests over gRPC to run the
program. The program itself is executed by `pulumi-language-python-exec`, Pulumi's own script, which ships in
the module that the CLI is built from. The host also starts policy packs and other plugins in Python.
`--language` selects another language, whose programs `infra.engine.languages` starts.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distributions, version
from pathlib import Path

if __name__ == "__main__":
    # The engine waits for this process before it starts the program.
    from infra.engine.protocol import leave_out_sdk

    leave_out_sdk()

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from infra.engine import languages
from infra.engine.peers import loopback_server

PYTHON = "python"
EXEC_SCRIPT = "pulumi-language-python-exec"
# Exit code of the exec script after it has shown the error to the user.
EXIT_AFTER_MESSAGE = 32
_GRACE_S = 2.0


def interpreter(info: language_pb2.ProgramInfo) -> str:
    """The Python of the project's `virtualenv` runtime option, else the one that runs this host."""
    option = info.options.fields["virtualenv"].string_value if "virtualenv" in info.options.fields else ""
    if option:
        python = Path(info.root_directory, option, "bin", "python")
        if python.exists():
            return str(python)
    return sys.executable


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Runs programs in one language for one engine; `Cancel` ends the program that runs."""

    def __init__(self, engine_address: str, exec_script: Path, language: str = PYTHON) -> None:
        self._engine = engine_address
        self._language = language
        self._exec_script = exec_script
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    def Handshake(
        self, request: language_pb2.LanguageHandshakeRequest, context: grpc.ServicerContext
    ) -> language_pb2.LanguageHandshakeResponse:
        """Store the address of the engine."""
        self._engine = request.engine_address or self._engine
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        """The version of the Pulumi SDK of programs."""
        return plugin_pb2.PluginInfo(version=version("pulumi"))

    def GetRequiredPlugins(
        self, request: language_pb2.GetRequiredPluginsRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetRequiredPluginsResponse:
        """Require nothing: the engine finds plugins when a resource first needs them."""
        return language_pb2.GetRequiredPluginsResponse()

    def GetRequiredPackages(
        self, request: language_pb2.GetRequiredPackagesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetRequiredPackagesResponse:
        """Require nothing: the engine finds plugins when a resource first needs them."""
        return language_pb2.GetRequiredPackagesResponse()

    def About(
        self, request: language_pb2.AboutRequest, context: grpc.ServicerContext
    ) -> language_pb2.AboutResponse:
        """The interpreter, for `pulumi about`."""
        return language_pb2.AboutResponse(
            executable=interpreter(request.info), version=".".join(map(str, sys.version_info[:3]))
        )

    def GetProgramDependencies(
        self, request: language_pb2.GetProgramDependenciesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetProgramDependenciesResponse:
        """List the installed packages, for `pulumi about`."""
        return language_pb2.GetProgramDependenciesResponse(
            dependencies=[
                language_pb2.DependencyInfo(name=found.name, version=found.version)
                for found in distributions()
            ]
        )

    def RuntimeOptionsPrompts(
        self, request: language_pb2.RuntimeOptionsRequest, context: grpc.ServicerContext
    ) -> language_pb2.RuntimeOptionsResponse:
        """No prompts for new projects."""
        return language_pb2.RuntimeOptionsResponse()

    def Run(
        self, request: language_pb2.RunRequest, context: grpc.ServicerContext
    ) -> language_pb2.RunResponse:
        """Run a program to its end; its output goes to the engine through this process's own output."""
        environment = {
            **os.environ,
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
            "PYTHONUNBUFFERED": "1",
        }
        try:
            command = self._command(request)
        except languages.LanguageError as error:
            return language_pb2.RunResponse(error=str(error))
        if self._language != PYTHON:
            environment |= languages.variables(self._language, self._flags(request))
        # A session of its own: the engine interrupts this host's whole group, and an interrupted
        # Python program would print a traceback, which does not help a user.
        program = subprocess.Popen(command, cwd=request.pwd, env=environment, start_new_session=True)
        with self._lock:
            self._running.add(program)
        try:
            code = program.wait()
        finally:
            with self._lock:
                self._running.discard(program)
        if code == 0:
            return language_pb2.RunResponse()
        if code == EXIT_AFTER_MESSAGE:
            return language_pb2.RunResponse(bail=True)
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
        return language_pb2.RunResponse(error=f"Program exited with {how}")

    def RunPlugin(
        self, request: language_pb2.RunPluginRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.RunPluginResponse]:
        """Run a folder with a `__main__.py`, such as a policy pack, until it ends or the engine ends it.

        Its output is streamed: the first line has its address.
        """
        # source: sdk/python/cmd/pulumi-language-python/main.go of Pulumi 3.259, RunPlugin
        plugin = subprocess.Popen(
            [interpreter(request.info), request.info.program_directory, *request.args],
            cwd=request.pwd,
            env=dict(pair.split("=", 1) for pair in request.env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        with self._lock:
            self._running.add(plugin)
        context.add_callback(plugin.terminate)
        try:
            yield from _printed(plugin)
        finally:
            plugin.terminate()
            code = _ended(plugin)
            with self._lock:
                self._running.discard(plugin)
        yield language_pb2.RunPluginResponse(exitcode=code)

    def InstallDependencies(
        self, request: language_pb2.InstallDependenciesRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        """Install the packages of a program; one in Python runs in an environment that has them."""
        command = languages.dependencies(self._language)
        if command:
            with _failing(context):
                languages.run(command, Path(request.info.program_directory or request.directory))
        yield language_pb2.InstallDependenciesResponse()

    def GeneratePackage(
        self, request: language_pb2.GeneratePackageRequest, context: grpc.ServicerContext
    ) -> language_pb2.GeneratePackageResponse:
        """Write the SDK of a package."""
        with _failing(context):
            folder = Path(request.directory)
            languages.write_sdk(self._language, folder, request.schema, request.loader_target)
        return language_pb2.GeneratePackageResponse()

    def Link(
        self, request: language_pb2.LinkRequest, context: grpc.ServicerContext
    ) -> language_pb2.LinkResponse:
        """Add SDKs to the packages that a program requires."""
        sdks = [(one.package.name, one.path) for one in request.packages]
        with _failing(context):
            text = languages.link(self._language, Path(request.info.program_directory), sdks)
        return language_pb2.LinkResponse(import_instructions=text)

    def _flags(self, request: language_pb2.RunRequest) -> dict[str, str]:
        flags = {
            "project": request.project,
            "root-directory": request.info.root_directory,
            "stack": request.stack,
            "parallel": str(request.parallel),
            "pwd": request.pwd,
            "monitor": request.monitor_address,
            "engine": self._engine,
            "organization": request.organization or "organization",
        }
        return {**flags, **({"dry-run": "true"} if request.dryRun else {})}

    def _command(self, request: language_pb2.RunRequest) -> list[str]:
        flags = self._flags(request)
        if self._language != PYTHON:
            program = Path(request.info.program_directory)
            return languages.command(self._language, program, flags, request.args)
        flags = {"dry-run": "false", **flags}
        return [
            interpreter(request.info),
            "-u",
            str(self._exec_script),
            *(part for name, value in flags.items() for part in (f"--{name.replace('-', '_')}", value)),
            str(Path(request.info.program_directory, request.info.entry_point)),
            *request.args,
        ]

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """End the program that runs, gently first."""
        self.end_programs()
        return empty_pb2.Empty()

    def end_programs(self) -> None:
        """Terminate every program that runs and kill what has not ended after a grace period."""
        with self._lock:
            running = list(self._running)
        for program in running:
            program.terminate()
        for program in running:
            _ended(program)


@contextmanager
def _failing(context: grpc.ServicerContext) -> Iterator[None]:
    """Report an error of a tool to the engine."""
    try:
        yield
    except languages.LanguageError as error:
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))


def _ended(program: subprocess.Popen[bytes]) -> int:
    """The exit code of a terminated program, which is killed after a grace period."""
    try:
        return program.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        program.kill()
        return program.wait()


def _printed(program: subprocess.Popen[bytes]) -> Iterator[language_pb2.RunPluginResponse]:
    """The output of a program, streamed until both of its streams have ended."""
    with selectors.DefaultSelector() as streams:
        for stream, name in ((program.stdout, "stdout"), (program.stderr, "stderr")):
            assert stream
            streams.register(stream, selectors.EVENT_READ, name)
        while streams.get_map():
            for ready, _ in streams.select():
                part = os.read(ready.fd, 65536)
                if not part:
                    streams.unregister(ready.fileobj)
                elif ready.data == "stdout":
                    yield language_pb2.RunPluginResponse(stdout=part)
                else:
                    yield language_pb2.RunPluginResponse(stderr=part)


def main() -> int:
    """Serve until the engine ends this process or exits."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    addresses = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    chosen = (argument.partition("=") for argument in sys.argv[1:])
    language = next((value for name, _, value in chosen if name == "--language"), PYTHON)
    script = Path(os.environ["TRAINSTACK_ENGINE_BIN"]) / EXEC_SCRIPT
    host = LanguageHost(addresses[-1] if addresses else "", script, language)
    server, port = loopback_server(32)  # a program or plugin that runs holds a thread
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    server.start()
    print(port, flush=True)  # noqa: T201 - the protocol: the first line is the port
    parent = os.getppid()
    # A killed engine sends no message, but the parent of this process changes.
    while not stop.wait(1.0) and os.getppid() == parent:
        pass
    host.end_programs()
    server.stop(grace=None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
