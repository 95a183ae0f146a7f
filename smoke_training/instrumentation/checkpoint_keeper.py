"""Commit, announce and prune written checkpoints in a thread."""

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

from smoke_training.instrumentation.checkpoints import commit, prune
from smoke_training.instrumentation.peers import Peers
from smoke_training.instrumentation.retention import Retention
from smoke_training.runtime.announcement import announce

RANKS_S = 600.0  # time that rank 0 waits for the files of slower ranks
END_S = 1800.0  # limit for the last checkpoint at the end of a run: 420 GB are read back in some minutes
FAILED_S = 10.0  # the same where the loop raised: a failed rank writes nothing more
_POLL_S = 0.2


class CheckpointKeeper:
    """Rank 0 commits the folder that all ranks have written, announces it, and prunes."""

    def __init__(self, retention: Retention, complain: Callable[[str], None]) -> None:
        self._retention, self._complain = retention, complain
        self._peers = Peers()
        self._work: queue.SimpleQueue[tuple[Path, int] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._given_up = threading.Event()

    def written(self, root: Path, step: int) -> None:
        """Register that this rank has written its files of a step."""
        self._peers.say(_word(step))
        if self._peers.rank == 0:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="checkpoint-keeper", daemon=True)
                self._thread.start()
            self._work.put((root, step))

    def said(self, at: float) -> None:
        """Announce a checkpoint that a loop keeps by itself."""
        if self._peers.rank == 0:
            threading.Thread(target=self._say, args=(at,), daemon=True).start()

    def stop(self, *, failed: bool) -> None:
        """Finish the written checkpoints; gives up after a limit, so that training can end."""
        if self._thread is None:
            return
        self._work.put(None)
        patience_s = FAILED_S if failed else END_S
        self._thread.join(patience_s)
        if self._thread.is_alive():
            self._given_up.set()  # a daemon thread inside of torch aborts the interpreter's end
            self._thread.join(FAILED_S)
            self._complain(f"the last checkpoint was not committed within {patience_s:.0f} s")

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            # An error here must not reach the training loop; it is recorded, with one warning.
            try:
                self._keep(*item)
            except Exception as error:
                self._complain(f"checkpoint of step {item[1]}: {type(error).__name__}: {error}")

    def _keep(self, root: Path, step: int) -> None:
        deadline = time.monotonic() + RANKS_S
        while late := self._peers.silent(_word(step)):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"ranks {', '.join(map(str, late))} have not written within {RANKS_S:.0f} s"
                )
            if self._given_up.wait(_POLL_S):
                return
        self._say(commit(root, step))
        prune(root, self._retention)

    def _say(self, at: float) -> None:
        try:
            announce(at)
        except OSError as error:
            self._complain(f"the time of the checkpoint was not announced: {error}")


def _word(step: int) -> str:
    return f"written/{step}"
