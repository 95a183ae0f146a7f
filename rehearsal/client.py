"""Access to a rehearsal home: environment for the engine, status, faults, secrets, local paths of buckets."""

import base64
import json
import os
import secrets
import shlex
import sys
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from infra.engine.golang import SetupError
from rehearsal import control, isolation, service_ports
from rehearsal.cluster_kind import ClusterKind, ProviderKind, choose, chosen, real_cluster
from rehearsal.controlplane import binaries
from rehearsal.core.encryption import passphrase_file
from rehearsal.core.packages import CLOUDS, PACKAGES
from rehearsal.core.schema import sdk_version
from rehearsal.core.state import State
from rehearsal.dataplane import folders
from rehearsal.dataplane.aws.secret_store import CURRENT, SecretStore
from rehearsal.dataplane.gcp.secret_store import ENABLED, GoogleSecrets
from rehearsal.kubernetes import ambient
from rehearsal.realcluster import real_provider

_ROOT = Path(__file__).resolve().parents[1]
_LAUNCHER = """#!/bin/sh
exec {python} -I -c 'import sys; sys.path.insert(0, sys.argv[1]); \
from rehearsal.{module} import main; sys.exit(main(sys.argv[2], sys.argv[3]))' {root} {argument} {home} "$@"
"""
# Components for programs in other languages; it deploys nothing itself, so it is the real one.
_COMPONENTS = """#!/bin/sh
exec {python} -I -c 'import sys; sys.path.insert(0, sys.argv.pop(1)); \
from plugin.__main__ import main; main()' {root} "$@"
"""


class Rehearsal:
    """One rehearsal home: its emulated clouds, its Pulumi state and the daemon that serves it."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()

    def choose(self, cluster: ClusterKind | None, provider: ProviderKind | None) -> None:
        """Choose the kinds of cluster and provider; None keeps the present one.

        Raises UserError when resources exist that were made with another choice, SetupError when programs are
        missing.
        """
        # Resources are counted only for a command that makes a choice.
        if (cluster or provider) and choose(self.home, cluster, provider, self.status()["resources"]):
            self.stop()  # the next daemon uses the choice
        if chosen(self.home).provider is ProviderKind.REAL and real_provider.installed() is None:
            where = "neither on PATH nor in the plug-in folder of Pulumi"
            fix = "Run `pulumi plugin install resource kubernetes`."
            raise SetupError(f"--provider real: {real_provider.NAME} is {where}", fix)
        if real_cluster(self.home) and binaries.ready() is None:
            raise SetupError("--cluster real: the control plane is not built here", "Run `make binaries`.")

    def environment(self) -> dict[str, str]:
        """Variables under which any Pulumi command runs against the emulated clouds and nothing else.

        They replace those of the same name; `isolation.without_credentials` removes the others that would
        lead to real clouds. Makes the home: launchers, state backend, passphrase. `PULUMI_HOME` moves too, so
        that neither the user's login nor the selected stack of real environments is touched.
        """
        control.private(self.home)
        state = self.home / "state"
        state.mkdir(exist_ok=True)
        empty = self.home / "no-credentials"
        empty.mkdir(exist_ok=True)
        self._write_launchers()
        _without_logs(self.home / "pulumi" / "logs")
        return {
            control.HOME_VARIABLE: str(self.home),
            "PULUMI_HOME": str(self.home / "pulumi"),
            "PULUMI_BACKEND_URL": state.as_uri(),
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(passphrase_file(self.home)),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            # A real provider on PATH would be taken before ours.
            "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
            # Of `components.gcp.propagation`: longer than the delay in the emulation.
            "TRAINSTACK_IAM_DELAY_S": "0.5",
            **isolation.elsewhere(empty),
            **service_ports.environment(self.home),
        }

    @contextmanager
    def serving(self) -> Iterator[dict[str, str]]:
        """Keep the emulated services open to which `environment()` leads; yields that environment.

        An engine opens them by itself. Raises ControlError when the daemon does not start.
        """
        environment = self.environment()
        connection, _ = control.lease(self.home, {"op": "serving", "engine": os.getpid()})
        try:
            yield environment
        finally:
            connection.close()

    def kubeconfig(self) -> Path:
        """A file for KUBECONFIG: the cluster of programs that use the current one and make none."""
        if chosen(self.home).provider is ProviderKind.REAL:
            return real_provider.admin_kubeconfig(self.home)
        path = self.home / "kubeconfig"
        control.private(self.home)
        path.write_text(ambient.KUBECONFIG)
        return path

    def status(self) -> dict[str, Any]:
        """Resources, workloads and engines; starts no daemon. See `control`."""
        status = control.ask_running(self.home, {"op": "status"})
        return status or {"resources": self._counts(), "workloads": [], "engines": 0}

    def drift(self, urn: str, values: Mapping[str, Any] | None) -> dict[str, str]:
        """Set properties of an emulated resource, by path, or delete it (None), outside of its program.

        Returns its URN, id and type. Raises ControlError with the reason when that cannot be done.
        """
        control.private(self.home)
        request = {"op": "delete"} if values is None else {"op": "drift", "values": dict(values)}
        return self._request({**request, "urn": urn})

    def seed(self, resources: Sequence[Mapping[str, Any]]) -> list[str]:
        """Register resources that no program made (`rehearsal.aws.existing`); returns the new ids."""
        control.private(self.home)
        return list(self._request({"op": "seed", "resources": list(resources)})["new"])

    def stop(self, *, patience_s: float = 20.0) -> None:
        """End the daemon and every workload; resources stay on disk. Raises ControlError when it hangs."""
        connection = control.connect(self.home)
        if connection is None:
            return
        try:
            connection.ask({"op": "stop"})
        except control.ControlError:
            pass  # it was ending already
        finally:
            connection.close()
        self.wait_until_idle(patience_s=patience_s)

    def wait_until_idle(self, *, patience_s: float = 20.0) -> None:
        """Wait until the daemon has ended. Raises ControlError when it has not in time."""
        deadline = time.monotonic() + patience_s
        while True:
            connection = control.connect(self.home)
            if connection is None:
                break
            connection.close()
            if time.monotonic() > deadline:
                raise control.ControlError("the rehearsal's daemon is still running")
            time.sleep(0.1)
        if (self.home / "daemon.lock").exists():
            with control.exclusive(self.home / "daemon.lock", deadline):
                return

    def local_path(self, uri: str) -> Path:
        """Local path of the data of an emulated `s3://bucket/key` or `gs://...`.

        Raises ValueError for other URIs.
        """
        scheme, separator, rest = uri.partition("://")
        if scheme not in ("s3", "gs") or not separator or ".." in rest.split("/"):
            raise ValueError(f"{uri} is not a URI of emulated storage")
        return folders.bucket(self.home, rest, scheme)

    def service_url(self, url: str) -> str | None:
        """Local URL of a Service of an emulated cluster; None without one.

        `url` may be the ARN of an MLflow App, whose server is started when it does not run, or the address of
        a service of Cloud Run, which starts with its first request.
        """
        if url.startswith("arn:") or url.endswith(".run.app"):
            return self._located(url)
        parts = urllib.parse.urlsplit(url)
        name, namespace = (*(parts.hostname or "").split("."), "", "")[:2]
        for workload in self.status()["workloads"]:
            if (workload.get("namespace"), workload.get("name")) == (namespace, name):
                for answering in workload.get("urls") or ():
                    return str(answering)
        return None

    def _located(self, name: str) -> str | None:
        with self._state() as state:
            if state is None or (name.startswith("arn:") and not state.issued(name)):
                return None
        url: str | None = self._request({"op": "locate", "name": name})["url"]
        return url

    def secret(self, name: str) -> dict[str, str] | None:
        """The current value of an emulated secret that holds a JSON object; None when it has no value.

        `name` is an ARN, or a resource name of Google Cloud.
        """
        value_of = _google_secret if name.startswith("projects/") else _aws_secret
        with self._state() as state:
            value = value_of(state, name) if state else None
        return dict(json.loads(value)) if value else None

    def kept_secret(self, namespace: str, name: str) -> dict[str, str] | None:
        """Data of a Secret of the emulated Kubernetes; None without one."""
        with self._state() as state:
            found = state.find(type="kubernetes:core/v1:Secret", name=name) if state else []
        held = [row.inputs.get("data") or {} for row in found if row.id == f"{namespace}/{name}"]
        return {key: base64.b64decode(text).decode() for key, text in held[0].items()} if held else None

    def recover(self, urns: Sequence[str]) -> list[str]:
        """Cancel requests of killed engines and delete the remains of these creates; returns their ids."""
        return list(self._request({"op": "recover", "urns": list(urns)})["taken_back"])

    def set_faults(self, faults: Mapping[str, Any]) -> None:
        """Set the faults of the next run, such as `{"smoke": {"slow_rank": 1, "duty": 0.5}}`; `{}`: none.

        Counting starts again from zero, also for the same faults as before. See `faults.Faults` for the keys.
        """
        path = self.home / "faults.json"
        if not faults:
            path.unlink(missing_ok=True)
            return
        control.private(self.home)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({**faults, "run": secrets.token_hex(8)}))
        draft.replace(path)  # another inode: the daemon notices it, and never reads half of it

    def count(self, part: str) -> int:
        """Number of emulated resources with this part in their URN, such as `::project::`."""
        with self._state() as state:
            return sum(part in record.urn for record in state.find()) if state else 0

    def _counts(self) -> dict[str, int]:
        """Resources by package, read without a daemon."""
        with self._state() as state:
            return {package: state.count(package) if state else 0 for package in CLOUDS}

    @contextmanager
    def _state(self) -> Iterator[State | None]:
        path = self.home / "state.sqlite"
        if not path.exists():
            yield None
            return
        with closing(State(path)) as state:
            yield state

    def _request(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The response of the daemon, started when needed."""
        connection, response = control.lease(self.home, dict(message))
        connection.close()
        return response

    def plugins(self) -> dict[str, Path]:
        """Package -> folder of the plugin that answers for it, which `environment()` writes."""
        return {package: self._plugin(package, version) for package, version in _versions(PACKAGES)}

    def _plugin(self, package: str, version: str) -> Path:
        return self.home / "pulumi" / "plugins" / f"resource-{package}-v{version}"

    def _write_launchers(self) -> None:
        """Install our plugins in the plugin folder of the engine, by package and version of the SDK.

        (The engine also finds plugins on PATH, but warns about each on every command.)
        """
        values: dict[str, object] = {"python": sys.executable, "root": _ROOT}
        self._write_launcher("trainstack", metadata.version("trainstack"), _COMPONENTS, values)
        for package, version in _versions(PACKAGES):
            real = chosen(self.home).provider is ProviderKind.REAL and package == "kubernetes"
            values |= {"home": self.home}
            values["argument"] = real_provider.installed() if real else package
            values["module"] = "realcluster.real_provider" if real else "plugin"
            self._write_launcher(package, version, _LAUNCHER, values)

    def _write_launcher(self, package: str, version: str, form: str, values: Mapping[str, object]) -> None:
        folder = self._plugin(package, version)
        folder.mkdir(parents=True, exist_ok=True)
        launcher = folder / f"pulumi-resource-{package}"
        text = form.format(**{name: shlex.quote(str(value)) for name, value in values.items()})
        if not launcher.exists() or launcher.read_text() != text:
            draft = launcher.with_suffix(f".{os.getpid()}")
            draft.write_text(text)
            draft.chmod(0o700)
            draft.replace(launcher)


def _without_logs(path: Path) -> None:
    """Prevent the automatic logs of engines, which take a third of an engine's processor time.

    No option disables them, but an engine continues without them where it cannot make their folder
    (`StartLogging` in pkg/logging/encrypted.go of Pulumi 3.259.0).
    """
    if not path.exists():
        path.touch()


def _versions(packages: Iterable[str]) -> Iterable[tuple[str, str]]:
    for package in packages:
        version = sdk_version(package)
        if version is not None:
            yield package, version


def _aws_secret(state: State, arn: str) -> str | None:
    versions = SecretStore(state).versions(arn)
    return next((version.value for version in versions if CURRENT in version.stages), None)


def _google_secret(state: State, name: str) -> str | None:
    store = GoogleSecrets(state)
    secret = store.find(name)
    enabled = [one for one in store.versions(secret) if one.state == ENABLED] if secret else []
    return base64.b64decode(enabled[-1].data).decode() if enabled else None
