"""A program in a rehearsal finds no credential of a real cloud in the places where SDKs look for one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal import isolation
from rehearsal.client import Rehearsal

PROGRAM = Path(__file__).parents[1] / "projects" / "programs" / "searching"
TRAINSTACK = Path(sys.executable).with_name("trainstack")
MARK = "real-credential"
VARIABLES = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"),
    *("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN"),
    *("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", "GCLOUD_KEYFILE_JSON"),
    *("AZURE_CLIENT_SECRET", "ARM_CLIENT_SECRET", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"),
    *("KUBERNETES_SERVICE_HOST", "KUBE_TOKEN", "PULUMI_ACCESS_TOKEN"),
)


@pytest.fixture
def rich(tmp_path: Path) -> dict[str, str]:
    """The environment of a user with credentials of every cloud, in variables and in files."""
    home = tmp_path / "user"
    adc = {
        "type": "authorized_user", "client_id": MARK, "client_secret": MARK, "refresh_token": MARK,
    }  # fmt: skip
    files = {
        ".aws/credentials": f"[default]\naws_access_key_id = {MARK}\naws_secret_access_key = {MARK}\n",
        ".config/gcloud/application_default_credentials.json": json.dumps(adc),
        ".kube/config": f"users: [{{name: {MARK}}}]\n",
        ".azure/msal_token_cache.json": MARK,
    }
    for name, text in files.items():
        file = home / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    return {**os.environ, "HOME": str(home), **dict.fromkeys(VARIABLES, MARK), "AWS_REGION": "us-east-1"}


def test_a_program_finds_no_credentials(rehearsal: Rehearsal, rich: dict[str, str]) -> None:
    def run(*arguments: str) -> str:
        done = subprocess.run(
            [TRAINSTACK, "rehearse", "run", PROGRAM, "--", *arguments],
            env={**rich, "TRAINSTACK_REHEARSAL_HOME": str(rehearsal.home)},
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("up", "--yes", "--skip-preview")
    found = json.loads(run("stack", "output", "--json"))
    assert MARK not in json.dumps(found)
    assert found["aws"] == "default rehearsal rehearsal None"
    assert found["aws call"].startswith('none: Could not connect to the endpoint URL: "http://127.0.0.1:')
    # The rehearsal's own login, whose tokens come from this machine.
    login = found["google"]
    assert "'_refresh_token': 'rehearsal'" in login and "'_token_url': 'http://127.0.0.1:" in login
    assert found["azure"] == "[]" and found["variables"] == []
    assert found["google metadata"] == "127.0.0.1:9"
    assert "server: https://" in found["kubernetes"] or found["kubernetes"].startswith("none")


def test_a_shell_with_the_printed_environment_finds_nothing(
    rehearsal: Rehearsal, rich: dict[str, str]
) -> None:
    script = f'eval "$({TRAINSTACK} rehearse env -s dev-aws)"; env'
    variables = {**rich, "TRAINSTACK_REHEARSAL_HOME": str(rehearsal.home)}
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=variables, check=True, capture_output=True, text=True
    )
    assert MARK not in done.stdout
    assert "AWS_REGION=us-east-1\n" in done.stdout and "PULUMI_BACKEND_URL=file://" in done.stdout


def test_settings_stay_and_other_variables_too() -> None:
    kept = {"AWS_REGION": "x", "GOOGLE_PROJECT": "p", "PATH": "/bin", "HOME": "/home/me"}
    assert isolation.without_credentials({**kept, "AWS_PROFILE": "prod", "KUBERNETES_PORT": "1"}) == kept
