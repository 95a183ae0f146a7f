"""Snapshot documents of a collector: the answers and errors of a cloud about one account.

The format is the same for every cloud: queries by name, each with items and refusals. It contains no secrets.
"""

import datetime
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from policies.sources.files import FileProblems, file_error, parsed, read_file, write_atomically
from policies.sources.live.queries import AnswerItem, Answers, ApiRefusal
from policies.sources.live.tables import CLOUDS

SCHEMA = "trainstack.snapshot/1"
_FIX = "Write it with: trainstack collect --live CLOUD --out FILE"


@dataclass(frozen=True)
class Snapshot:
    """Answers of an account, a project or a cluster at one time."""

    cloud: str
    account: str
    """Number of the account, or the project; the identity of a cluster."""
    region: str
    """Region, or the address of a cluster."""
    taken: str
    """Time in UTC (ISO 8601)."""
    answers: Mapping[str, Answers]
    """By name of the query."""

    @property
    def source(self) -> str:
        """Short description for a report."""
        return f"{self.cloud} {self.account} {self.region} {self.taken}"


def moment() -> str:
    """The current time in the format of a snapshot."""
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def document(snapshot: Snapshot) -> str:
    """The snapshot as JSON; times become strings."""
    answers = {
        name: {
            "items": [_item(one) for one in found.items],
            "refusals": [asdict(one) for one in found.refusals],
        }
        for name, found in sorted(snapshot.answers.items())
    }
    head = {"schema": SCHEMA, "cloud": snapshot.cloud, "account": snapshot.account}
    rest = {"region": snapshot.region, "taken": snapshot.taken, "answers": answers}
    return json.dumps({**head, **rest}, indent=1, default=_serialized) + "\n"


def write(snapshot: Snapshot, path: Path) -> None:
    """Write the document atomically with mode 0600. Raises UserError."""
    write_atomically(path, document(snapshot), "Name another file.")


def _item(item: AnswerItem) -> dict[str, Any]:
    return {"asked": item.asked, "answer": item.answer} if item.asked else {"answer": item.answer}


def _serialized(value: object) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    raise TypeError(f"an answer holds a {type(value).__name__}")


def read(path: Path) -> Snapshot:
    """The snapshot in a file. Raises UserError for any other file, with all its problems."""
    file = str(path)
    found = parsed(read_file(path, _FIX), file, _FIX)
    if isinstance(found, dict) and "deployment" in found:
        rule = "is the export of a stack, not a snapshot"
        raise file_error(file, rule, "Pass it as --state.", "snapshot-is-a-state")
    if not isinstance(found, dict) or not str(found.get("schema")).startswith("trainstack.snapshot/"):
        raise file_error(file, "is no output of `trainstack collect`", _FIX, "snapshot-unknown-format")
    problems = FileProblems(file)
    if found["schema"] != SCHEMA:
        fix = "Collect it again, or use the trainstack that wrote it."
        problems.add("schema", found["schema"], f"must be {SCHEMA}", fix, "snapshot-unsupported-version")
        problems.end()
    for key in ("cloud", "account", "region", "taken"):
        if not problems.wants(found, key, str, "", _FIX):
            problems.add(
                key, found.get(key), "must be a text that is not empty", _FIX, "snapshot-field-empty"
            )
    if found.get("cloud") not in CLOUDS:
        rule = f"must be {' or '.join(CLOUDS)}"
        problems.add("cloud", found.get("cloud"), rule, _FIX, "snapshot-unknown-cloud")
    if not isinstance(found.get("answers"), dict):
        problems.add("answers", None, "must be an object", _FIX, "file-value-wrong-type")
    answers = {
        name: _answers(row, f"answers.{name}", problems)
        for name, row in problems.wants(found, "answers", dict, "", _FIX).items()
    }
    problems.end()
    where = {key: found[key] for key in ("cloud", "account", "region", "taken")}
    return Snapshot(answers=answers, **where)


def _answers(row: Any, path: str, problems: FileProblems) -> Answers:
    if not isinstance(row, dict):
        problems.add(path, row, "must be an object", _FIX, "file-value-wrong-type")
        return Answers()
    items = problems.wants(row, "items", list, path, _FIX)
    refusals = problems.wants(row, "refusals", list, path, _FIX)
    answered, refused = [], []
    for index, one in enumerate(items):
        where = f"{path}.items[{index}]"
        if not isinstance(one, dict) or "answer" not in one:
            problems.add(where, one, "must be an object with an answer", _FIX, "file-value-wrong-type")
            continue
        answered.append(AnswerItem(one["answer"], problems.wants(one, "asked", dict, where, _FIX)))
    for index, one in enumerate(refusals):
        where = f"{path}.refusals[{index}]"
        if not isinstance(one, dict):
            problems.add(where, one, "must be an object", _FIX, "file-value-wrong-type")
            continue
        code, message, action = (
            problems.wants(one, key, str, where, _FIX) for key in ("code", "message", "action")
        )
        asked = problems.wants(one, "asked", dict, where, _FIX)
        refused.append(ApiRefusal(code, message, action, asked))
    return Answers(tuple(answered), tuple(refused))
