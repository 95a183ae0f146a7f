"""Finished results for tests of what is made of them."""

import json
from pathlib import Path
from typing import Any

from smoke_training import verdict
from smoke_training.evidence import Evidence
from smoke_training.judges.run import baseline
from smoke_training.model import Check, Judgement, Measured, Verdict
from smoke_training.record import document
from tests.smoke_training.samples import CPU, hello, lines, parsed, plan

RATE = "collective.all_reduce"


def circumstances(run_id: str = "0123456789abcdef", minute: int = 0) -> document.Circumstances:
    return document.Circumstances(
        run_id=run_id, started=f"2026-11-21T12:{minute:02}:00+00:00", duration_s=21.5, python="3.11.7",
        kernel="6.1", code_sha256="00", environment_sha256="11",
    )  # fmt: skip


def result(items: list[dict[str, Any]], run_id: str = "0123456789abcdef", **changes: Any) -> dict[str, Any]:
    """What the launcher makes of these evidence lines."""
    asked, found = plan(git_sha="abc123", **changes), parsed(items)
    judged = verdict.judge(asked, found)
    return document.build(asked, found, judged, circumstances(run_id))


def passed(
    value: float = 1.0,
    half: float = 0.002,
    run_id: str = "0123456789abcdef",
    minute: int = 0,
    noise: dict[str, float | None] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A result that passed with one figure of a declared wire, whatever other checks exist."""
    asked, found = plan(git_sha="abc123", network_gbit_s=8.0, **changes), parsed(lines())
    measured = Measured(
        value=value, unit="GB/s", n=20, estimator="median", ci=(value * (1 - half), value * (1 + half))
    )
    check = Check(
        id=RATE, status=Verdict.PASS, required=True, message="good", measured=measured, noise=noise or {}
    )
    judged = regressed(asked, found, (check,))
    return document.build(asked, found, judged, circumstances(run_id, minute))


def regressed(asked: Any, found: Evidence, checks: tuple[Check, ...]) -> Judgement:
    """A PASS with the comparison that the verdict would add."""
    comparison = baseline.regression(asked, found, checks, Verdict.PASS)
    return Judgement(verdict=Verdict.PASS, checks=(*checks, comparison))


def written(folder: Path, content: dict[str, Any], items: list[dict[str, Any]] | None = None) -> Path:
    """The result on disk, its samples beside it."""
    path = folder / f"{content['run_id']}.json"
    path.write_text(json.dumps(content))
    kept = [CPU, hello(), *(lines() if items is None else items)]
    path.with_suffix(".samples.jsonl").write_text("".join(json.dumps(item) + "\n" for item in kept))
    return path
