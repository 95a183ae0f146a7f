"""Causes of a failed preview, from the output of the CLI."""

import json

import pytest

from infra.engine.state_problems import causes


def reported(*rows: dict[str, str]) -> str:
    return json.dumps({"diagnostics": rows})


def failed(stdout: str, stderr: str = "") -> str:
    return f"\n code: 255\n stdout: {stdout}\n stderr: {stderr}"


def row(severity: str, message: str) -> dict[str, str]:
    return {"severity": severity, "message": f"<{{%reset%}}>{message}<{{%reset%}}>\n"}


TRACEBACK = (
    "failed:\nTraceback (most recent call last):\n"
    '  File "/sdk/run.py", line 3, in run\n    call()\n'
    '  File "/p/__main__.py", line 7, in <module>\n    names["zone"]\n    ~~~~~^^^^^^^^\n'
    "KeyError: 'zone'\n"
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (failed(reported(row("warning", "w"), row("error", "no region"))), "no region"),
        (
            failed(reported(row("error", "a"), row("error", "a"), row("error", "b"))),
            "a\nb",
        ),
        (
            failed(reported(row("error", "preview failed")), "error: it ended"),
            "it ended",
        ),
        (failed(reported(row("error", TRACEBACK))), "failed: KeyError: 'zone' (/p/__main__.py:7)"),
        (failed("{}", "error: no stack"), "no stack"),
        (failed("{not json", "error: no stack"), "no stack"),
        (failed("", "error: no stack"), "no stack"),
    ],
)
def test_the_errors_of_the_engine_are_the_cause(text: str, found: str) -> None:
    assert causes(text) == found
