"""Records of runs: one JSON line for each."""

import json
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def recorded(path: Path) -> list[Line]:
    """Complete lines of a record; a kill may have cut the last one."""
    found = []
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(text))
        except ValueError:
            print(f"{path}: a line is not readable and is not counted: {text[:60]}")
    return found
