"""An audit of a small stack as the command makes it, with everything that reports and evidence show."""

import json
from pathlib import Path
from typing import Any

from tests.trainstack.cli.command import run

LOGS, BUCKET = "aws:cloudwatch/logGroup:LogGroup", "aws:s3/bucket:Bucket"
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "x"}
AT = "2026-11-23T12:00:00Z"
TAGS = {
    "owner": "anna", "cost-center": "42", "environment": "dev", "data-class": "internal",
    "expires-on": "never",
}  # fmt: skip


def urn(kind: str, name: str, stack: str = "dev") -> str:
    return f"urn:pulumi:{stack}::app::{kind}::{name}"


def row(kind: str, name: str, stack: str = "dev", **outputs: Any) -> dict[str, Any]:
    provider = f"{urn('pulumi:providers:' + kind.partition(':')[0], 'default', stack)}::id"
    return {
        "urn": urn(kind, name, stack), "type": kind, "custom": True, "id": name, "provider": provider,
        "outputs": outputs,
    }  # fmt: skip


def logs(name: str, days: Any, stack: str = "dev", **outputs: Any) -> dict[str, Any]:
    return row(LOGS, name, stack, retentionInDays=days, tagsAll=TAGS, **outputs)


def provider(package: str, version: str) -> dict[str, Any]:
    kind = f"pulumi:providers:{package}"
    return {
        "urn": urn(kind, "default"), "type": kind, "custom": True, "id": "id", "inputs": {"version": version},
    }  # fmt: skip


def state(folder: Path, *rows: dict[str, Any]) -> Path:
    file = folder / "state.json"
    file.write_text(json.dumps({"version": 3, "deployment": {"resources": list(rows)}}))
    return file


def audit(file: Path, *more: str) -> tuple[int, str]:
    """(exit code, what it said) at a fixed time; user errors are raised."""
    return run("audit", "--state", str(file), "--at", AT, *more)
