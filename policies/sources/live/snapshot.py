"""The document that a collector writes: what a cloud answered about one account, and what it refused.

It is the same for every cloud: questions by name, each with items and refusals. It holds no secrets.
"""

import datetime
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from policies.sources.document import Complaints, content, parsed, refuse, write_whole
from policies.sources.live.question import Answers, Item, Refusal
from policies.sources.live.tables import CLOUDS

SCHEMA = "trainstack.snapshot/1"
_FIX = "Write it with: trainstack collect --live CLOUD --out FILE"


@dataclass(frozen=True)
class Snapshot:
    """What was asked where, when, and what was heard."""

    cloud: str
    account: str
    """Number of the account, or the project; the identity of a cluster."""
    region: str
    """The address of a cluster."""
    taken: str
    """When, in UTC (ISO 8601)."""
    answers: Mapping[str, Answers]
    """By the name of the question."""

    @property
    def source(self) -> str:
        """In a few words, for a report."""
        return f"{self.cloud} {self.account} {self.region} {self.taken}"


def moment() -> str:
    """Now, as a snapshot says when it was taken."""
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def document(snapshot: Snapshot) -> str:
    """The snapshot as a JSON text; times become texts."""
    answers = {
        name: {
            "items": [_item(one) for one in found.items],
            "refusals": [asdict(one) for one in found.refusals],
        }
        for name, found in sorted(snapshot.answers.items())
    }
    head = {"schema": SCHEMA, "cloud": snapshot.cloud, "account": snapshot.account}
    rest = {"region": snapshot.region, "taken": snapshot.taken, "answers": answers}
    return json.dumps({**head, **rest}, indent=1, default=_told) + "\n"


def write(snapshot: Snapshot, path: Path) -> None:
    """Write the document whole or not at all, for its owner alone. Raises UserError."""
    write_whole(path, document(snapshot), "Name another file.")


def _item(item: Item) -> dict[str, Any]:
    return {"asked": item.asked, "answer": item.answer} if item.asked else {"answer": item.answer}


def _told(value: object) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    raise TypeError(f"an answer holds a {type(value).__name__}")


def read(path: Path) -> Snapshot:
    """The snapshot in a file. Raises UserError for a file that is anything else, with all its faults."""
    file = str(path)
    found = parsed(content(path, _FIX), file, _FIX)
    if isinstance(found, dict) and "deployment" in found:
        raise refuse(file, "is the export of a stack, not a snapshot", "Give it as --state.")
    if not isinstance(found, dict) or not str(found.get("schema")).startswith("trainstack.snapshot/"):
        raise refuse(file, "is not what `trainstack collect` writes", _FIX)
    complaints = Complaints(file)
    if found["schema"] != SCHEMA:
        fix = "Collect it again, or take the trainstack that wrote it."
        complaints.add("schema", found["schema"], f"must be {SCHEMA}", fix)
        complaints.end()
    for key in ("cloud", "account", "region", "taken"):
        if not complaints.wants(found, key, str, "", _FIX):
            complaints.add(key, found.get(key), "must be a text that is not empty", _FIX)
    if found.get("cloud") not in CLOUDS:
        complaints.add("cloud", found.get("cloud"), f"must be {' or '.join(CLOUDS)}", _FIX)
    if not isinstance(found.get("answers"), dict):
        complaints.add("answers", None, "must be an object", _FIX)
    answers = {
        name: _answers(row, f"answers.{name}", complaints)
        for name, row in complaints.wants(found, "answers", dict, "", _FIX).items()
    }
    complaints.end()
    where = {key: found[key] for key in ("cloud", "account", "region", "taken")}
    return Snapshot(answers=answers, **where)


def _answers(row: Any, path: str, complaints: Complaints) -> Answers:
    if not isinstance(row, dict):
        complaints.add(path, row, "must be an object", _FIX)
        return Answers()
    items = complaints.wants(row, "items", list, path, _FIX)
    refusals = complaints.wants(row, "refusals", list, path, _FIX)
    heard, refused = [], []
    for index, one in enumerate(items):
        where = f"{path}.items[{index}]"
        if not isinstance(one, dict) or "answer" not in one:
            complaints.add(where, one, "must be an object with an answer", _FIX)
            continue
        heard.append(Item(one["answer"], complaints.wants(one, "asked", dict, where, _FIX)))
    for index, one in enumerate(refusals):
        where = f"{path}.refusals[{index}]"
        if not isinstance(one, dict):
            complaints.add(where, one, "must be an object", _FIX)
            continue
        code, message, action = (
            complaints.wants(one, key, str, where, _FIX) for key in ("code", "message", "action")
        )
        asked = complaints.wants(one, "asked", dict, where, _FIX)
        refused.append(Refusal(code, message, action, asked))
    return Answers(tuple(heard), tuple(refused))
