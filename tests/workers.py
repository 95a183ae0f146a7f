"""Worker processes that are forked when all tests have been collected, so that modules are imported once.

`pytest -p tests.workers --processes 4` runs files of tests in four processes.
"""

import atexit
import multiprocessing
import os
import signal
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import TextIO

import pytest
from _pytest.config import create_terminal_writer
from _pytest.runner import pytest_sessionfinish as tear_down

_FORK = multiprocessing.get_context("fork")
_WAITING = Path("tests", "cluster")
# Two workers: each has a control plane of its own, whose start and idling cost a minute of processor time.
_WAITERS = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=0, help="run files of tests in this many processes")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--processes"):
        config.pluginmanager.register(Workers(config.getoption("--processes")), "workers")


class Files:
    """Files of tests in order. Those with a real control plane are for two workers, others for the rest.

    Tests of a control plane wait: three workers that began with them left a third of the processors idle. A
    worker gets any file when none of its own kind is left.
    """

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        files = groupby(range(len(items)), key=lambda index: items[index].path)
        self._left = deque((self._waits(items[0].config, path), [*indices]) for path, indices in files)

    @staticmethod
    def _waits(config: pytest.Config, file: Path) -> bool:
        return file.is_relative_to(config.rootpath / _WAITING)

    def take(self, worker: int) -> list[int]:
        """Indices of the tests of the next file for a worker; none when all files are taken."""
        waits = worker < _WAITERS
        file = next((file for file in self._left if file[0] == waits), None)
        if file is None:
            return self._left.popleft()[1] if self._left else []
        self._left.remove(file)
        return file[1]

    def put_back(self, indices: list[int]) -> None:
        """Give tests of a worker that has ended to the next one."""
        if indices:
            self._left.appendleft((False, indices))


class Worker:
    """One forked process, as the first process sees it."""

    def __init__(self, session: pytest.Session, number: int, others: Sequence["Worker"]) -> None:
        self.number = number
        self.assigned: deque[int] = deque()
        """Tests that have not begun, by index."""
        self.running: int | None = None
        self.pipe, theirs = _FORK.Pipe()
        # A worker that holds an end of another's pipe would hide the end of this process from it.
        inherited = (self.pipe, *(other.pipe for other in others))
        self.process: ForkProcess = _FORK.Process(target=work, args=(session, number, theirs, inherited))
        self.process.start()
        theirs.close()


class Workers:
    """Replaces pytest's loop over tests: hands out files, and reports what the workers send."""

    def __init__(self, number: int) -> None:
        self._number = number

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly or not session.items:
            return None
        files = Files(session.items)
        alive: list[Worker] = []
        session.config.pluginmanager.getplugin("terminalreporter").showfspath = False
        # Its creation registers the removal at the end of this process, for the folders of all workers.
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        try:
            for number in range(self._number):
                alive.append(Worker(session, number, alive))
            while alive:
                self._serve(session, files, alive)
        finally:
            for worker in alive:
                with suppress(ProcessLookupError):
                    os.kill(worker.process.pid or 0, signal.SIGINT)
            for worker in alive:
                worker.process.join()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _serve(self, session: pytest.Session, files: Files, alive: list[Worker]) -> None:
        """Wait for messages of workers, and handle one of each."""
        ready = wait([worker.pipe for worker in alive])
        for worker in [worker for worker in alive if worker.pipe in ready]:
            try:
                kind, content = worker.pipe.recv()
            except (EOFError, ConnectionError):
                alive.remove(worker)
                worker.process.join()
                if worker.running is not None or worker.assigned:
                    self._replace(session, files, alive, worker)
                continue
            if kind == "next":
                stop = session.shouldfail or session.shouldstop
                taken = [] if stop else files.take(worker.number)
                worker.assigned.extend(taken)
                worker.pipe.send(taken)
            elif kind == "begin":
                worker.running = worker.assigned.popleft()
            elif kind == "end":
                worker.running = None
            else:
                self._report(session.config, kind, content)

    def _report(self, config: pytest.Config, kind: str, content: dict[str, object]) -> None:
        if kind == "report":
            report = config.hook.pytest_report_from_serializable(config=config, data=content)
            config.hook.pytest_runtest_logreport(report=report)
        elif kind == "warning":
            config.hook.pytest_warning_recorded.call_historic(kwargs=content)
        else:
            config.hook.pytest_runtest_logfinish(**content)

    def _replace(self, session: pytest.Session, files: Files, alive: list[Worker], worker: Worker) -> None:
        """Report the test in which a worker ended, and start another worker for those after it."""
        if worker.running is None:
            raise RuntimeError(f"worker {worker.number} ended outside of a test: {worker.process.exitcode}")
        item = session.items[worker.running]
        text = f"worker {worker.number} ended (exit {worker.process.exitcode}) in {item.nodeid}"
        ended = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "???")  # type: ignore[arg-type]
        session.config.hook.pytest_runtest_logreport(report=ended)
        files.put_back([*worker.assigned])
        alive.append(Worker(session, worker.number, alive))


def work(session: pytest.Session, number: int, pipe: Connection, inherited: Sequence[Connection]) -> None:
    """Run tests in a forked process until the first process has no more."""
    for end in inherited:
        end.close()
    # What the first process does at its end is not to be done here as well.
    atexit._clear()
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        settle(session.config, number, nowhere)
        session.config.pluginmanager.register(Sender(session.config, pipe))
        try:
            for item, following in pairs(session, pipe):
                pipe.send(("begin", None))
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                pipe.send(("end", None))
        except KeyboardInterrupt:
            pass
        finally:
            # Fixtures that are still in use, as of an interrupted test.
            tear_down(session)
            atexit._run_exitfuncs()


def pairs(session: pytest.Session, pipe: Connection) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Each test with the one after it, which decides what fixtures stay: the next file is requested ahead."""
    left: deque[int] = deque()

    def more() -> bool:
        pipe.send(("next", None))
        left.extend(pipe.recv())
        return bool(left)

    while left or more():
        item = session.items[left.popleft()]
        yield item, session.items[left[0]] if left or more() else None


def settle(config: pytest.Config, number: int, nowhere: TextIO) -> None:
    """Separate a forked process from the first one: folder, captured output, terminal, outcomes."""
    factory = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = factory.getbasetemp() / f"worker{number}"
    factory._basetemp.mkdir(mode=0o700, exist_ok=True)
    # The files that receive output are shared with the first process.
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    reporter = config.pluginmanager.getplugin("terminalreporter")
    reporter._tw = create_terminal_writer(config, file=nowhere)
    if config.pluginmanager.hasplugin("outcomes"):
        config.pluginmanager.unregister(name="outcomes")


class Sender:
    """Sends the first process what it reports."""

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self._config = config
        self._pipe = pipe

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._pipe.send(("report", data))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._pipe.send(("finish", {"nodeid": nodeid, "location": location}))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: object
    ) -> None:
        # The class of a warning may not exist for the first process: its name is enough.
        text = f"{warning_message.category.__name__}: {warning_message.message}"
        plain = warnings.WarningMessage(
            UserWarning(text), UserWarning, warning_message.filename, warning_message.lineno
        )
        content = {"warning_message": plain, "when": when, "nodeid": nodeid, "location": location}
        self._pipe.send(("warning", content))
