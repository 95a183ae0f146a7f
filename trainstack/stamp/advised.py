"""Choices from advice: the JSON document of `trainstack advise --format json`."""

import json
from pathlib import Path
from typing import Any

from infra.errors import Problem, UserError

_OPTION = "--from-advice"
_SCHEMA = "trainstack.advice/1"  # trainstack/advice/report.py
_LARGEST = 1 << 20
_MARKETS = ("on_demand", "spot")
_FIX = "Write it with: trainstack advise --parameters 7B --tokens 500M --people 4 --format json > FILE"


def read(path: Path) -> dict[str, Any]:
    """Cloud, region, machine, market and nodes of the best run, and the profile, if the advice has one.

    Raises UserError for a file that is no advice, and for one without a machine that can be bought.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise _error(path, "is larger than 1 MiB", code="advice-unreadable")
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _error(path, f"cannot be read: {error}", code="advice-unreadable") from None
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise _error(path, f"is no document of the schema {_SCHEMA}", code="advice-unknown-schema")
    best = document.get("best")
    if best is None:
        fix = "Ask again with a longer deadline, a higher budget or more machines."
        raise _error(path, "names no machine that meets the limits", fix, code="advice-without-machine")
    try:
        market, nodes = str(best["price"]["market"]), int(best["count"])
        found = {
            "cloud": str(best["machine"]["cloud"]),
            "region": str(best["price"]["region"]),
            "machine": str(best["machine"]["name"]),
            "market": market,
            "nodes": nodes,
        }
    except (KeyError, TypeError, ValueError) as error:
        raise _error(path, f"has no {error} of the best run", code="advice-unknown-schema") from None
    if market not in _MARKETS:
        rule = f"names a machine by {market}, which needs a contract or a queue that the advice does not name"
        raise _error(path, rule, "Ask without --flex-start.", code="advice-market-not-supported")
    return {**found, "profile": str(document.get("profile") or "")}


def _error(path: Path, rule: str, fix: str = _FIX, *, code: str) -> UserError:
    return UserError([Problem(_OPTION, str(path), rule, fix, code=code)])
