"""Machine-readable progress on stdout: one JSON object per line."""

import json
import sys
from datetime import UTC, datetime


def emit(event: str, **facts: object) -> None:
    """Write one event line at once."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    say(json.dumps({"event": event, "at": now, **facts}))


def say(text: str) -> None:
    """Write readable text, below the event lines; a closed stdout (`>&-`) loses it."""
    if sys.stdout is not None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
