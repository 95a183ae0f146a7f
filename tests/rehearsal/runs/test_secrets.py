"""After an update with secrets, no file of the home holds one of them in plain text."""

import base64
import os
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
from pulumi import automation

from rehearsal import control
from rehearsal.client import Rehearsal
from rehearsal.kubernetes import ambient

Select = Callable[[Callable[[], None]], automation.Stack]
SECRETS = {
    name: f"plain-{name}-0f3c9d"
    for name in ("provider-key", "version", "parameter", "config-map", "password", "kubernetes", "config")
}


def program() -> None:
    def secret(name: str) -> pulumi.Output[str]:
        return pulumi.Output.secret(SECRETS[name])

    provider = aws.Provider(
        "explicit", region="us-east-1", access_key="AKIAEXAMPLE", secret_key=secret("provider-key")
    )
    options = pulumi.ResourceOptions(provider=provider)
    kept = aws.secretsmanager.Secret("s", opts=options)
    aws.secretsmanager.SecretVersion("v", secret_id=kept.id, secret_string=secret("version"), opts=options)
    aws.ssm.Parameter("p", type="SecureString", value=secret("parameter"), opts=options)
    aws.rds.Cluster(
        "db",
        engine="aurora-postgresql",
        master_username="admin1",
        master_password=secret("password"),
        skip_final_snapshot=True,
        opts=options,
    )
    cluster = k8s.Provider("cluster", kubeconfig=ambient.KUBECONFIG)
    inside = pulumi.ResourceOptions(provider=cluster)
    k8s.core.v1.Secret("k", string_data={"key": secret("kubernetes")}, opts=inside)
    k8s.core.v1.ConfigMap("c", data={"key": secret("config-map")}, opts=inside)
    pulumi.export("config", pulumi.Config().require_secret("word"))


def leaks(folder: Path) -> Iterator[str]:
    """`file: secret` for every secret in a file below a folder, also as base64 or percent-encoded."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = file.read_bytes()
        for name, secret in SECRETS.items():
            forms = (secret, base64.b64encode(secret.encode()).decode(), urllib.parse.quote(secret))
            if any(form.encode() in content for form in forms):
                yield f"{file.relative_to(folder)}: {name}"


def test_no_file_holds_a_secret_in_plain_text(rehearsal: Rehearsal, stack: Select) -> None:
    stack_ = stack(program)
    stack_.set_config("word", automation.ConfigValue(SECRETS["config"], secret=True))
    # An engine that stays keeps the daemon alive, and so the database's log apart from it.
    connection, _ = control.lease(rehearsal.home, {"op": "serve", "package": "aws", "engine": os.getpid()})
    stack_.up()
    assert (rehearsal.home / "state.sqlite-wal").stat().st_size > 0
    assert list(rehearsal.home.rglob("*.bak")), "the engine has made its backup"
    assert list(leaks(rehearsal.home)) == []
    connection.close()
    stack_.destroy()
    rehearsal.stop()
    assert list(leaks(rehearsal.home)) == []
