"""Backends by the real engine: states in files, a wrong passphrase, a bucket that does not answer."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.engine.golang import ROOT
from infra.engine.install import current
from tests.trainstack.cli.command import checked
from tests.trainstack.fleet.agency import add_client, stack_of, write_fleet

NOWHERE = "s3://state?region=us-east-1&endpoint=http://127.0.0.1:9&s3ForcePathStyle=true"
KEYS = "[agency]\naws_access_key_id = a\naws_secret_access_key = b\n"


@pytest.fixture(scope="module")
def agency(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cli = current()
    if cli is None:
        pytest.skip("needs a Pulumi CLI")
    base = tmp_path_factory.mktemp("agency")
    clients: list[dict[str, Any]] = []
    for name in ("acme", "globex"):
        folder = add_client(base, name)
        state = base / "state" / name
        state.mkdir(parents=True)
        (base / f"{name}.pass").write_text(f"passphrase of {name}\n")
        backend = {"url": state.as_uri(), "passphrase": {"file": f"{name}.pass"}}
        clients.append({"name": name, "backend": backend})
        variables = {
            "PULUMI_BACKEND_URL": state.as_uri(), "PULUMI_CONFIG_PASSPHRASE_FILE": str(base / f"{name}.pass"),
            "PULUMI_HOME": str(base / "pulumi"), "PATH": os.environ["PATH"], "HOME": str(base),
        }  # fmt: skip
        words = ["stack", "init", stack_of(name), "--non-interactive"]
        subprocess.run([cli.path, *words], cwd=folder, env=variables, check=True, capture_output=True)
    (base / "globex.pass").write_text("another one\n")
    add_client(base, "initech")
    (base / "state" / "initech").mkdir()
    url = (base / "state" / "initech").as_uri()
    clients.append({"name": "initech", "backend": {"url": url, "passphrase": {"file": "acme.pass"}}})
    add_client(base, "hooli")
    login = {"aws": {"profile": "agency"}}
    clients.append({"name": "hooli", "backend": {"url": NOWHERE}, "credentials": login})
    (base / ".aws").mkdir()
    (base / ".aws" / "credentials").write_text(KEYS)
    write_fleet(base, clients)
    return base


def fleet(base: Path, *words: str) -> dict[str, Any]:
    variables = {"PYTHONPATH": str(ROOT), "HOME": str(base), "PATH": os.environ["PATH"]}
    code = "from trainstack.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "fleet", *words, "--format", "json"],
        cwd=base, env=variables, check=False, capture_output=True, text=True,
    )  # fmt: skip
    found = {one["client"]: one for one in checked(done.stdout)["stacks"]}
    assert done.returncode == any(one["state"] != "done" for one in found.values()), done.stderr
    return found


def test_a_client_whose_backend_cannot_be_used_is_named_beside_the_others(agency: Path) -> None:
    found = fleet(agency, "drift")
    assert found["acme"]["state"] == "done"
    assert checked(json.dumps(found["acme"]["result"]))["drifted"] == []
    codes = {
        name: (one["state"], one["problems"][0]["code"]) for name, one in found.items() if name != "acme"
    }
    assert codes == {
        "globex": ("unusable", "passphrase-wrong"),
        "initech": ("unusable", "stack-not-found"),
        "hooli": ("unusable", "backend-unreachable"),
    }


def test_an_audit_reads_the_state_from_the_backend(agency: Path) -> None:
    found = fleet(agency, "audit", "--client", "acme")
    assert found["acme"]["state"] == "done"
    assert checked(json.dumps(found["acme"]["result"]))["resources"] == 0
