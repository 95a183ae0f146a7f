"""The way out of a stack, followed with the real engine: the state at another backend, secrets included."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from infra.engine.install import current
from tests.trainstack.dossier.given import facts
from trainstack.handover.contents import bundle

STACK = "dev-aws"
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": '"hidden"'}


@pytest.fixture
def client(tmp_path: Path) -> Path:
    """The folder of a client, whose stack has a secret in its state at the backend of the agency."""
    if current() is None:
        pytest.skip("needs a Pulumi CLI")
    for name in ("agency", "own", "client"):
        (tmp_path / name).mkdir()
    (tmp_path / "client" / "Pulumi.yaml").write_text("name: acme\nruntime: python\n")
    pulumi(tmp_path / "client", "stack", "init", STACK)
    salt = (tmp_path / "client" / f"Pulumi.{STACK}.yaml").read_text().split()[1]
    root = {
        "urn": f"urn:pulumi:{STACK}::acme::pulumi:pulumi:Stack::acme-{STACK}",
        "outputs": {"login": SECRET},
    }
    state = {
        "manifest": {"time": "2026-11-29T00:00:00Z", "magic": "", "version": ""},
        "secrets_providers": {"type": "passphrase", "state": {"salt": salt}},
        "resources": [{**root, "custom": False, "type": "pulumi:pulumi:Stack"}],
    }
    (tmp_path / "plain.json").write_text(json.dumps({"version": 3, "deployment": state}))
    pulumi(tmp_path / "client", "stack", "import", "--file", "../plain.json")
    return tmp_path / "client"


def pulumi(folder: Path, *words: str, backend: str = "agency") -> str:
    cli = current()
    assert cli is not None
    variables = {
        "PULUMI_BACKEND_URL": (folder.parent / backend).as_uri(), "PULUMI_CONFIG_PASSPHRASE": "x",
        "PULUMI_HOME": str(folder.parent / "home"), "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PATH": os.environ["PATH"],
    }  # fmt: skip
    command = [cli.path, *words, "--non-interactive"]
    done = subprocess.run(command, cwd=folder, env=variables, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_state_goes_to_another_backend_with_its_secrets(client: Path) -> None:
    page = bundle("acme", [(facts(STACK), {})])[f"{STACK}/exit/README.md"].decode()
    lines = [one.split("#")[0].split() for one in re.findall(r"(?m)^    pulumi (.+)$", page)]
    backend = "agency"
    for words in lines:
        if words[0] == "login":  # what PULUMI_BACKEND_URL does here
            backend = "own"
        else:
            pulumi(client, *words, backend=backend)
    shown = pulumi(client, "stack", "output", "login", "--show-secrets", "-s", STACK, backend="own")
    assert backend == "own" and shown.strip() == "hidden"
