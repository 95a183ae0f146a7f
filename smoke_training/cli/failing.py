"""How a command that cannot start says so."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from smoke_training.model import EXIT_CODES, Verdict


def refuse(summary: str, problems: Sequence[str]) -> int:
    """Say what is wrong, in the termination message too where there is one; the exit code of ERROR."""
    text = "\n".join([f"ERROR {summary}", *problems])
    sys.stderr.write(text + "\n")
    message = os.environ.get("TERMINATION_MESSAGE_PATH")
    if message:
        Path(message).write_text(text[:4000])
    return EXIT_CODES[Verdict.ERROR]
