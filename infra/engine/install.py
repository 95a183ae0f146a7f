"""Finds a Pulumi CLI, or installs it, or builds it from source, in that order; standard library only.

The choice is stored in `.trainstack/engine.json` of the checkout, or of the user without one, so that later
commands start immediately.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from infra.engine.golang import ROOT, TOOLS, SetupError, build, find_go, go
from infra.places import CHECKOUT
from infra.places import USER as HOME

# After-hook failures fail the update, and policy packs can be run offline, from this version on.
MINIMUM = (3, 249, 0)
# The newest version of the CLI whose Go module can be downloaded everywhere (later ones cannot).
SOURCE_VERSION = "3.259.0"
_RECORD = HOME / "engine.json"
_SOURCE = TOOLS / "pulumi"
_VERSION_FLAG = f"-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version={SOURCE_VERSION}"
_HOST = "pulumi-language-python"
_INSTALLER = "https://get.pulumi.com"
# Runs dynamic resources, such as the gate of a stack without a cluster.
_DYNAMIC = "pulumi-resource-pulumi-python"
_EXEC = "pulumi-language-python-exec"
# The working directory is a project's folder: with `python -m`, a folder `infra` in it would be imported. A
# variable PYTHONPATH would be inherited by the program, which may run in another environment.
_LAUNCHER = """#!/bin/sh
# Starts the language host for {language} for the Pulumi CLI beside this file.
export TRAINSTACK_ENGINE_BIN={bin}
exec {python} -P -c 'import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); \
runpy.run_module("infra.engine.language_host", run_name="__main__")' {root} --language={language} "$@"
"""

Notify = Callable[[str], None]


@dataclass(frozen=True)
class Cli:
    """A Pulumi CLI that can run Python programs."""

    path: str
    version: str
    origin: str  # "path", "official" or "source"

    @property
    def folder(self) -> str:
        """The folder for PATH."""
        return str(Path(self.path).parent)


def current() -> Cli | None:
    """The CLI that set-up chose, if it still exists."""
    try:
        cli = Cli(**json.loads(_RECORD.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return cli if os.access(cli.path, os.X_OK) else None


def probe(path: str | Path, origin: str) -> Cli | None:
    """The CLI at `path`, or None when it does not run, is too old, or cannot run Python programs."""
    try:
        answer = subprocess.run(
            [str(path), "version"],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", answer.stdout.strip())
    if answer.returncode != 0 or not found or tuple(map(int, found.groups())) < MINIMUM:
        return None
    beside = Path(path).resolve().parent
    if not all((beside / helper).exists() or shutil.which(helper) for helper in (_HOST, _DYNAMIC)):
        return None
    return Cli(str(path), ".".join(found.groups()), origin)


def choose(cli: Cli) -> Cli:
    """Store a choice for later commands."""
    HOME.mkdir(parents=True, exist_ok=True)
    draft = _RECORD.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(asdict(cli), indent=2) + "\n")
    draft.replace(_RECORD)
    return cli


def find() -> Cli | None:
    """A CLI that is ready to use: chosen before, on PATH, or installed below `.trainstack/` before."""
    chosen = current()
    if chosen and probe(chosen.path, chosen.origin):
        return chosen
    on_path = shutil.which("pulumi")
    candidates = [
        (on_path, "path"),
        (str(HOME / "pulumi" / "bin" / "pulumi"), "official"),
        (str(HOME / "bin" / "pulumi"), "source"),
    ]
    for path, origin in candidates:
        cli = probe(path, origin) if path else None
        if cli:
            return choose(cli)
    return None


def install_official(python: Path, notify: Notify) -> Cli | None:
    """Try Pulumi's own installer, run by `python` (which has the SDK); None when it cannot be reached."""
    notify("no Pulumi CLI on PATH; trying its installer")
    target = HOME / "pulumi"
    code = (
        "import sys; from pulumi.automation import PulumiCommand; "
        "print(PulumiCommand.install(root=sys.argv[1]).command)"
    )
    try:
        answer = subprocess.run(
            [str(python), "-c", code, str(target)], check=False, capture_output=True, text=True, timeout=300
        )
    except subprocess.TimeoutExpired:
        answer = None
    cli = probe(target / "bin" / "pulumi", "official") if answer and answer.returncode == 0 else None
    if cli is None:
        shutil.rmtree(target, ignore_errors=True)  # a partial installation would be found later
        notify(f"the Pulumi CLI cannot be installed from {_INSTALLER} (network or HTTPS_PROXY)")
        return None
    return choose(cli)


def command() -> str:
    """The word by which a user's shell calls the CLI: `pulumi`, or its path where PATH has none."""
    cli = current()
    return shlex.quote(cli.path) if cli and shutil.which("pulumi") is None else "pulumi"


def build_from_source(python: Path, notify: Notify) -> Cli:
    """Build the CLI below `.trainstack/bin` (about 3 minutes on 2 cores). Raises SetupError."""
    if find_go() is None:
        raise SetupError(
            "no usable Pulumi CLI: none on PATH is new enough "
            f"(>= {'.'.join(map(str, MINIMUM))}, with its Python language host), its installer cannot be "
            "reached, and there is no Go to build it with. Install Pulumi or Go 1.26."
        )
    folder = HOME / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    notify(f"building Pulumi CLI {SOURCE_VERSION} from source (about 3 minutes, once)")
    draft = folder / "pulumi.building"
    package = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
    build(_SOURCE, draft, _VERSION_FLAG, package)
    sdk = go(_SOURCE, "list", "-m", "-f", "{{.Dir}}", "github.com/pulumi/pulumi/sdk/v3").strip()
    shutil.copyfile(Path(sdk, "python", "cmd", _EXEC), folder / _EXEC)
    shutil.copyfile(Path(sdk, "python", "dist", _DYNAMIC), folder / _DYNAMIC)
    (folder / _DYNAMIC).chmod(0o755)
    write_host(folder, python)
    draft.replace(folder / "pulumi")
    cli = probe(folder / "pulumi", "source")
    if cli is None:
        raise SetupError(f"the CLI built at {folder / 'pulumi'} does not run; remove it")
    return choose(cli)


def write_host(folder: Path, python: Path, language: str = "python") -> None:
    """Write or renew the launcher of a language host, which `python` runs, beside the CLI in `folder`."""
    values = {"bin": folder, "root": ROOT, "python": python, "language": language}
    name = f"pulumi-language-{language}"
    draft = folder / f".{name}"
    draft.write_text(_LAUNCHER.format(**{key: shlex.quote(str(value)) for key, value in values.items()}))
    draft.chmod(0o755)
    draft.replace(folder / name)


def link(cli: Cli, folder: Path) -> None:
    """Make `pulumi` in a virtual environment's `bin` a link to a CLI that set-up installed.

    The language host of one that was built before is renewed.
    """
    name, target = folder / "pulumi", Path(cli.path).resolve()
    if cli.origin == "source":
        write_host(Path(cli.path).parent, folder / "python")
    if cli.origin != "path" and name.resolve() != target:
        name.unlink(missing_ok=True)
        name.symlink_to(target)


def require() -> Cli:
    """The CLI that was chosen before, else one that is found; without a checkout, also one to install.

    Raises SetupError when there is none.
    """
    cli = current() or find()
    if cli is None and CHECKOUT is None:
        cli = install_official(Path(sys.executable), _print)
        if cli:
            _print(f'installed Pulumi {cli.version}; for its commands: export PATH="{cli.folder}:$PATH"')
    if cli is None:
        fix = (
            f"Install Pulumi {'.'.join(map(str, MINIMUM))} or newer (pulumi.com/docs/install), "
            "put it on PATH, then repeat the command."
        )
        raise SetupError("no Pulumi CLI is set up", *([] if CHECKOUT else [fix]))
    return cli


def _print(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 - progress
