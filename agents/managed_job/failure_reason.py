"""Format the reason of a script's failure as the service shows it (pure)."""

import re
import signal
from collections.abc import Sequence

from agents.managed_job.supervisor import BY_SIGNAL, ProgramExit

LIMIT = 1024  # characters that SageMaker shows of the file (CreateTrainingJob, FailureReason)
_TRACEBACK = "Traceback (most recent call last):"
# torch puts "[rank1]:" before the lines of a rank's last traceback, torchrun's --tee "[default1]:".
_RANK = re.compile(r"^\[(?:rank|default)(\d+)\]: ?")
# "  rank      : 1 (local_rank: 1)" below "Root Cause (first observed failure):" (torch.distributed.elastic).
_ROOT = re.compile(r"^\s*rank\s*:\s*(\d+)")
_AGENT = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"


def reason(
    script: str, ended: ProgramExit, *, stopped: signal.Signals | None = None, out_of_memory: bool = False
) -> str:
    """Return at most `LIMIT` characters: script, exit code, error, then the end of the traceback."""
    lines = traceback(ended.last)
    error = lines[-1].strip() if lines else next(filter(str.strip, reversed(ended.last)), "").strip()
    parts = [f"{script}: {_ending(ended, stopped)}"]
    if out_of_memory:
        parts.append("the kernel killed a process: out of memory")
    if error:
        parts.append(error)
    head = ": ".join(parts)[: LIMIT // 2]
    kept: list[str] = []
    for line in reversed(lines[:-1]):
        if len("\n".join([head, line, *kept])) > LIMIT:
            break
        kept.insert(0, line)
    return "\n".join([head, *kept])


def _ending(ended: ProgramExit, stopped: signal.Signals | None) -> str:
    if ended.killed_by is not None:
        text = f"ended by {_name(ended.killed_by)}, exit code {BY_SIGNAL + ended.killed_by}"
    else:
        text = f"exit code {ended.code}"
    return f"stopped by {stopped.name}, {text}" if stopped else text


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def traceback(lines: Sequence[str]) -> list[str]:
    """Return the traceback of the rank that failed first, if torchrun names one, else the last.

    Empty where there is none; torchrun's own, which only reports that a rank failed, is excluded.
    """
    blocks = _blocks(lines)
    root = _root(lines)
    of_root = [block for rank, block in blocks if root is not None and rank == root]
    return (of_root or [block for _, block in blocks] or [[]])[-1]


def _root(lines: Sequence[str]) -> int | None:
    for index, line in enumerate(lines):
        if line.startswith("Root Cause"):
            return next((int(m[1]) for later in lines[index:] if (m := _ROOT.match(later))), None)
    return None


def _blocks(lines: Sequence[str]) -> list[tuple[int | None, list[str]]]:
    """Return every traceback with the rank of its lines, up to the line of its error."""
    by_rank: dict[int | None, list[str]] = {}
    found: list[tuple[int | None, list[str]]] = []
    for line in lines:
        mark = _RANK.match(line)
        rank = int(mark[1]) if mark else None
        text = _RANK.sub("", line)
        if text.startswith(_TRACEBACK):
            by_rank[rank] = [text]
        elif rank in by_rank:
            by_rank[rank].append(text)
            if text and not text[0].isspace():  # the error: end of the traceback
                block = by_rank.pop(rank)
                if not text.startswith(_AGENT):
                    found.append((rank, block))
    return found
