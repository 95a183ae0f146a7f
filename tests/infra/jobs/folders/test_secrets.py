"""Secrets by name and by content: refused with file, line and kind, never with the secret itself."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from infra.errors import UserError
from infra.jobs.packing.pack import pack
from infra.jobs.submission import prepare
from tests.infra.jobs.conftest import Stack
from tests.infra.jobs.folders.corpus import DIGITS, HEX, LETTERS, Folder, accepted, refused, text
from tests.infra.jobs.samples import NOW

WORD = LETTERS + DIGITS
AWS = "AKIA" + text("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)
AWS_SECRET = text(WORD + "+/", 40)
HF, WANDB, GITHUB = "hf_" + text(LETTERS, 34), text(HEX, 40), "ghp_" + text(WORD, 36)
PEM = (
    ed25519.Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
    .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    .decode()
)
SERVICE_ACCOUNT = json.dumps(
    {"type": "service_account", "private_key": PEM, "client_email": "a@b.c"}, indent=1
)
NOTEBOOK = json.dumps(
    {"cells": [{"source": ["login()"], "outputs": [{"text": [f"token: {HF}\n"]}]}], "nbformat": 4}, indent=1
)
KUBECONFIG = (
    f"apiVersion: v1\nkind: Config\ncurrent-context: a\nusers:\n- user:\n    token: {text(WORD, 60)}\n"
)

CONTENTS: dict[str, tuple[str, str | bytes, int]] = {
    "a private key": ("notes.txt", f"see\n{PEM}", 2),
    "a private key far down": ("notes.txt", "x\n" * 10_000 + PEM, 10_001),
    "a key of an account of Google Cloud": ("gcp.json", SERVICE_ACCOUNT, 3),
    "a key of AWS": ("config.py", f"KEY = '{AWS}'\n", 1),
    "a secret of AWS": ("run.sh", f"#!/bin/sh\nexport AWS_SECRET_ACCESS_KEY={AWS_SECRET}\n", 2),
    "a secret of AWS in JSON": ("aws.json", json.dumps({"SecretAccessKey": AWS_SECRET}), 1),
    "a token of Hugging Face": ("train.py", f"import x\nlogin('{HF}')\n", 2),
    "a token in the output of a notebook": ("explore.ipynb", NOTEBOOK, 10),
    "a key of W&B": ("train.sh", f"wandb login {WANDB}\n", 1),
    "a key of W&B in a notebook": ("n.ipynb", json.dumps([f'wandb.login(key="{WANDB}")']), 1),
    "a new key of W&B": ("w.yaml", f"key: wandb_v1_{text(WORD, 77)}\n", 1),
    "a token of GitHub": ("setup.cfg", f"url = https://{GITHUB}@github.com/a/b\n", 1),
    "a fine token of GitHub": ("x.txt", "github_pat_" + text(WORD, 82), 1),
    "a token of GitLab": ("x.txt", "glpat-" + text(WORD, 20), 1),
    "a key of OpenAI": ("x.py", f"k='sk-proj-{text(WORD, 74)}T3BlbkFJ{text(WORD, 74, 'b')}'", 1),
    "a key of Anthropic": ("x.py", f"k='sk-ant-api03-{text(WORD, 93)}AA'", 1),
    "a webhook of Slack": ("x.py", f"u='https://hooks.slack.com/services/{text(WORD, 44)}'", 1),
    "a key of Google's interfaces": ("x.js", f"key: 'AIza{text(WORD, 35)}'", 1),
    "a token in a large file": ("x.bin", b"\0" * 3_000_000 + f"\n{HF}\n".encode() + b"\0" * 3_000_000, 2),
    "a kubeconfig": ("cluster.yaml", KUBECONFIG, 6),
    "a .netrc under another name": ("login", f"machine api.wandb.ai\n  login user\n  password {WANDB}\n", 3),
    "kaggle.json under another name": ("k.json", json.dumps({"username": "ada", "key": text(HEX, 32)}), 1),
    "a password of a database": ("db.py", f"URL = 'postgresql://ada:{text(WORD, 16)}@db.example.com/x'\n", 1),
    "a token from PowerShell": ("x.txt", f"first\r\n{HF}\r\n".encode("utf-16"), 2),
    "an index with a password": ("requirements.txt", f"numpy\n-i https://ada:{text(WORD, 5)}@x.org/s\n", 2),
    "an index with a token": ("requirements.txt", f"--extra-index-url https://{text(WORD, 32)}@x.org/s\n", 1),
    "a package with a token": ("requirements.txt", f"git+https://user:{text(WORD, 6)}@github.com/a/b\n", 1),
    "constraints with a token": ("requirements.txt", f"-c https://user:{text(WORD, 6)}@x.org/c.txt\n", 1),
}  # fmt: skip
NAMES = (
    *(".env", ".envrc", "prod.env", ".env.local", "deploy.pem", "id_ed25519", "credentials", ".aws/config"),
    *(
        "my-service-account.json",
        "ada_accessKeys.csv",
        ".netrc",
        "kubeconfig-dev",
        ".kube/config",
        "kaggle.json",
    ),
    *(
        "application_default_credentials.json",
        "secrets.toml",
        ".pypirc",
        ".huggingface/token",
        ".docker/config.json",
    ),
)
# Long words that are no secrets: digests, identifiers, public keys, arguments.
HARMLESS = f"""
git+https://github.com/wandb/wandb@{text(HEX, 40)}
revision: {text(HEX, 40)}  # of the model
sha256:{text(HEX, 64)}
wandb_run_id = "{text(WORD, 8)}"
wandb.init(project="{text(HEX, 40)}")
tokenizer = AutoTokenizer.from_pretrained("hf_internal_testing_tiny_random_gpt2_model_x")
hf_hub_download(repo_id="a/b")
token = os.environ["HF_TOKEN"]
AKIA = "a word"
find("secret_access_key", ModelProviderServiceConfigProviderSecret)
key = b"-----BEGIN PRIVATE KEY-----" + rest + b"-----END PRIVATE KEY-----"
smb://user:mypassword@server/share
-----BEGIN PUBLIC KEY-----
{text(WORD, 64)}
-----END PUBLIC KEY-----
https://user:password@example.com  http://${{USER}}:${{PASSWORD_OF_THE_PROXY}}@proxy
machine learning login page password field
secret_key: "{"x" * 40}"
ghp_{"0" * 36}
"""


@pytest.mark.parametrize("name", CONTENTS)
def test_a_secret_in_a_file_is_refused_by_line_unless_the_file_is_named(tmp_path: Path, name: str) -> None:
    path, content, line = CONTENTS[name]
    made = refused(("file-holds-secret", f"{path}:{line}"), files={path: content})
    assert made.check(tmp_path / "run") is None
    with pytest.raises(UserError) as caught:
        pack(tmp_path / "run")
    for secret in (AWS, AWS_SECRET, HF, WANDB, GITHUB, PEM[40:80]):
        assert secret not in str(caught.value)
    if path != "requirements.txt":
        sent = Folder(packed=frozenset({"train.py", path}), files=made.files, send=(f"./{path}",))
        assert sent.check(tmp_path / "sent") is not None


@pytest.mark.parametrize("path", NAMES)
def test_a_file_named_like_a_secret_is_refused_unless_it_is_named(tmp_path: Path, path: str) -> None:
    assert refused(("file-like-secret", path), files={path: "x"}).check(tmp_path / "run") is None
    assert accepted("train.py", path, files={path: "x"}, send=(path,)).check(tmp_path / "sent") is not None


def test_words_that_are_no_secrets_are_sent(tmp_path: Path) -> None:
    assert accepted("train.py", "notes.md", files={"notes.md": HARMLESS}).check(tmp_path / "run") is not None


def test_all_secrets_are_named_at_once(tmp_path: Path) -> None:
    made = refused(
        ("file-like-secret", ".env"),
        ("file-holds-secret", "a.py:1"),
        ("file-holds-secret", "a.py:2"),
        ("link-broken", "gone"),
        files={".env": "x", "a.py": f"'{HF}'\n'{GITHUB}'\n"},
        build=lambda folder: (folder / "gone").symlink_to("nothing"),
    )
    assert made.check(tmp_path / "run") is None


def test_a_file_to_send_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refused(("sent-file-missing", "--send"), send=("no.txt",)).check(tmp_path / "run") is None


def test_a_secret_among_the_arguments_is_refused(stack: Stack) -> None:
    (stack.folder / "train.py").write_text("x = 1\n")
    options = replace(stack.options, arguments=("--token", HF))
    with pytest.raises(UserError) as caught:
        prepare(stack.outputs, options, stack.service, NOW)
    assert caught.value.codes == (("argument-like-secret", "arguments"),) and HF not in str(caught.value)
