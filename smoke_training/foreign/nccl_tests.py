"""Read the output of nccl-tests as it is published: line by line, in constant memory (pure).

Formats follow NVIDIA/nccl-tests `src/common.cu` and `src/util.cu`: 2.19.6 at commit a0b82b2 (root, `#wrong`,
per-iteration columns of `-I`, time stamps of `-T`, JSON of `-J`), and the columns before them (`error`, no
root). Around a row may be what launchers and collectors of logs add: prefixes, colours, table borders.
"""

import contextlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from smoke_training.formulae.bandwidth import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from smoke_training.reader import UNFIT, DocumentError

MOST_TESTS, MOST_ROWS, MOST_RANKS = 200, 4096, 1 << 16  # of a file, of a test: what is kept has a limit
KEPT = 60  # repetitions of a row (`-N`)
MOST_JSON = 64 << 20  # characters

BYTES = {
    "int8": 1, "uint8": 1, "char": 1, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "half": 2,
    "bfloat16": 2, "int": 4, "int32": 4, "uint32": 4, "float": 4, "int64": 8, "uint64": 8, "double": 8,
}  # fmt: skip
# One of these is in every line that is read; of the many others no expression is searched.
_NOTED = (
    *("nranks", "Rank", "algbw", "nThread", "_perf", "Avg bus", "Out of", "failure", "iters", "Collective"),
    *("rccl", "RCCL", "asterisks", "float", "half", "double", "int8", "int32", "int64", "char", "f8e", "fp8"),
    *(" int ", "completion", "noticed", "exited", "BAD TERM", "CANCELLED", "srun"),
)
_NAMES = {"all_reduce": ALL_REDUCE, "all_gather": ALL_GATHER, "reduce_scatter": REDUCE_SCATTER}
_NAMES |= {"alltoall": ALL_TO_ALL}
# Colours, borders of tables, and ranks that mpirun -prepend-rank inserts before every part of a line.
_INSERTED = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\||(?<=[\w/])\[\d+\](?=\s)")
_ROW = re.compile(
    rf"(?<![\w.,])(\d[\d,]*)\s+(\d[\d,]*)\s+({'|'.join(BYTES)})(?:\s+(sum|prod|max|min|avg|mulsum|none))?(?!\S)"
)
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?|[-+]?\.\d+|N/A|-?inf|-?nan", re.IGNORECASE)
_PREFIX = re.compile(r"^\S*[>:\]]\s")
_REST = re.compile(r"^(?:\S*[>:\]]\s)?\s*((?:[\d.,]+(?:e[-+]?\d+)?|N/A)(?:\s+|$)){4,}$")
_RANK = re.compile(
    r"Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+(\d+)\s+\[[^]]*\]\s+(\S.*)"
)
_RANKS = re.compile(r"Rank\s+(\d+)\s*\.\.\s*Rank\s+(\d+)\s+on\s+(\S+)\s+(\S.*)")
_TEST = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|alltoallv?|broadcast|reduce|sendrecv|scatter|gather|hypercube)_perf"
)
_COMM = re.compile(r"\brank \d+ nranks (\d+) ")
_JSON = re.compile(r"\s*(\{|\[\s*(\{|$))")  # not the [ of a prefix
_AVERAGE = re.compile(r"Avg bus bandwidth\s*:\s*([\d.]+)")
_BOUNDS = re.compile(r"Out of bounds values\s*:\s*(\d+)")
_SIZES = re.compile(r"\bmaxBytes (\d{1,18}) step: (\d{1,18})\((factor|bytes)\)")
_FAILURE = re.compile(r"Test (NCCL |CUDA )?failure|NCCL WARN .*completion .*(status=|error) ?[1-9]")
# Of launchers: Open MPI, MPICH, Slurm. After the total they report exit codes of tests that ended.
_KILLED = re.compile(
    r"noticed that process|exited on signal|BAD TERMINATION|\*\*\* .*CANCELLED|srun: error: .*task"
)
# The last is a line that rccl-tests alone prints, under every table.
_RCCL = re.compile(r"^\W*rccl-tests\b|\b(RCCL version|librccl|Errors with asterisks)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """One half of a row: microseconds, GB/s with half a unit of their last printed digit, wrong elements."""

    time_us: float
    algbw: float
    busbw: float
    wrong: float | None
    algbw_half: float = 5e-6
    busbw_half: float = 5e-6

    @property
    def factor(self) -> tuple[float, float]:
        """Least and greatest ratio of busbw to algbw that rounds to these figures."""
        low, high = self.busbw - self.busbw_half, self.busbw + self.busbw_half
        least = self.algbw - self.algbw_half
        return max(low, 0.0) / (self.algbw + self.algbw_half), high / least if least > 0 else math.inf


@dataclass(frozen=True)
class Row:
    """One size of a sweep: bytes, elements, type, operation, readings (out of place, in place)."""

    line: int
    size: int
    count: int
    type: str
    redop: str
    root: int
    readings: tuple[Reading, ...]

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Two rows of one key measure the same."""
        return self.type, self.redop, self.root, self.size


@dataclass
class Test:
    """One run of a program of nccl-tests. `ranks` are (rank, host, local device, name of the device)."""

    named: str | None = None
    ranks: list[tuple[int, str, int | None, str]] = field(default_factory=list)
    nranks: set[int] = field(default_factory=set)
    rows: dict[tuple[str, str, int, int], list[Row]] = field(default_factory=dict)
    order: list[tuple[str, str, int, int]] = field(default_factory=list)
    iterations: int | None = None
    average: float | None = None
    sizes: tuple[int, int, int] = (0, 1, 0)  # greatest as requested, factor to the next one, bytes to add
    failure: str | None = None  # the message of a test that ended with an error
    lost: str = ""  # what is known of a test beside it that began and never ended
    out_of_bounds: int | None = None  # its own count of wrong results
    damaged: int = 0
    disordered: bool = False
    rooted: bool = False
    cpu_time: bool = False
    per_iteration: bool = False
    _next: int = 0  # place in the order, from the second cycle on

    def add(self, row: Row) -> None:
        """Keep a row. A cycle repeats the order of the first; rows of two worlds do not."""
        known = self.rows.setdefault(row.key, [])
        if not known and len(self.rows) > MOST_ROWS:
            raise DocumentError([f"line {row.line}: more than {MOST_ROWS} sizes in one test; judge a part"])
        if known:
            self.disordered |= self.order[self._next % len(self.order)] != row.key
            self._next += 1
        else:
            self.disordered |= self._next > 0
            self.order.append(row.key)
        if len(known) < KEPT:
            known.append(row)

    @property
    def cycles(self) -> int:
        """Number of repetitions of the sweep (`-N`)."""
        return 1 + self._next // max(len(self.order), 1)

    @property
    def cut(self) -> bool:
        """Report whether it ended before its last size, or within a row."""
        most, factor, more = self.sizes
        return self.average is None and (self.damaged > 0 or self.order[-1][-1] * factor + more <= most)

    @property
    def all(self) -> list[Row]:
        """All rows."""
        return [row for rows in self.rows.values() for row in rows]

    @property
    def first(self) -> Row:
        """Its first row."""
        return self.rows[self.order[0]][0]

    @property
    def collective(self) -> str:
        """Name of the collective: as printed, else by the columns.

        An all-reduce counts the elements of the whole array, others those of a rank; an all-to-all verifies
        nothing in place (N/A, or errors that old versions do not count).
        """
        row = self.first
        named = self.named or ""  # perhaps from a text around the table
        if named == "sendrecv" or (named and ("reduce" in named) == (row.redop != "none")):
            return _NAMES.get(named, named)
        whole = row.size == row.count * BYTES.get(row.type, 4)
        if row.root >= 0:
            of_all = "broadcast" if row.redop == "none" else "reduce"
            return of_all if whole else "scatter or gather"
        if row.redop != "none":
            return ALL_REDUCE if whole else REDUCE_SCATTER
        if whole:
            return "sendrecv"
        right = [reading.wrong is not None and reading.wrong < 1 for reading in row.readings]
        counted = self.out_of_bounds != 0 and row.readings[-1].wrong is not None
        return ALL_TO_ALL if right == [True, False] and not counted else ALL_GATHER


def parse(lines: Iterable[str]) -> list[Test]:
    """Return every test with rows. DocumentError for what is no output of nccl-tests, with the reason."""
    source = iter(lines)
    first = next((line for line in source if line.strip()), "")
    if _JSON.match(first):
        found = _of_json(first, source)
        if isinstance(found, Test):
            return [found]
        first, source = "", iter(found)
    tests, open_row, averages = [Test()], "", list[float]()
    for number, raw in enumerate(itertools.chain([first], source), 1):
        if ("NCCL INFO" in raw or not open_row) and not any(word in raw for word in _NOTED):
            continue
        line = _INSERTED.sub(" ", raw)
        if ("rccl" in line.lower() or "asterisks" in line) and _RCCL.search(line):
            raise DocumentError([f"line {number}: output of RCCL, not of NCCL; the references are of NCCL"])
        test = _current(tests, line, number)
        _header(test, line)
        if match := _AVERAGE.search(line):
            averages.append(float(match[1]))
            if test.rows:
                test.average = averages[-1]
                tests.append(Test(named=test.named, rooted=test.rooted, nranks=test.nranks))
            continue
        if open_row and _REST.match(line):  # a log of NCCL was printed into the middle of a row
            line, open_row, test.damaged = f"{open_row} {_PREFIX.sub('', line)}", "", test.damaged - 1
        row = _row(test, line, number)
        if isinstance(row, Row):
            test.add(row)
        elif row:
            test.damaged, open_row = test.damaged + 1, row
    whole, failure, lost = [test for test in tests if test.rows], tests[-1].failure, _lost(tests[-1])
    if not whole:
        rule = "no table of nccl-tests: must have rows with size, count, type, redop, time, algbw and busbw"
        if averages:
            rule += f"; an average ({averages[0]:g} GB/s) over all sizes says nothing of any of them"
        ended = f"; the test failed: {failure}" if failure else f"; {lost}: it hung" if lost else ""
        raise DocumentError([rule + ended])
    whole[-1].failure, whole[-1].lost = whole[-1].failure or failure, whole[-1].lost or lost
    return whole


def _current(tests: list[Test], line: str, number: int) -> Test:
    """Return the test that a line belongs to; a new one where it starts one."""
    starts = "Collective test starting" in line or "nThread " in line
    if tests[-1].rows and (starts or ("algbw" in line and "size" in line)):
        tests.append(Test())
    elif starts and (lost := _lost(tests[-1])):
        tests[-1] = Test(failure=tests[-1].failure, lost=lost)  # or another world began
    if len(tests) <= MOST_TESTS:
        return tests[-1]
    raise DocumentError([f"line {number}: more than {MOST_TESTS} tests; split the file"])


def _lost(test: Test) -> str:
    """Return what is known of a test that began and printed no row; empty where there is none."""
    known = f"{test.named or 'a test'} of {len(test.ranks) or 'unnamed'} ranks began and printed no row"
    return test.lost or (known if not test.rows and (test.ranks or test.sizes[0]) else "")


def _header(test: Test, line: str) -> None:
    if match := _RANK.search(line):
        test.ranks.append((int(match[1]), match[2], int(match[3]), match[4].strip()))
    elif match := _RANKS.search(line):
        first, last = (int(match[place][:9]) for place in (1, 2))
        if len(test.ranks) + last - first > MOST_RANKS:
            raise DocumentError([f"more than {MOST_RANKS} ranks in one test; judge a part"])
        test.ranks += [(n, match[3], None, match[4].strip()) for n in range(first, last + 1)]
    elif match := _COMM.search(line):
        test.nranks.add(int(match[1]))
    elif (match := _TEST.search(line)) and not test.rows:
        test.named = match[1]
    if match := _BOUNDS.search(line):
        test.out_of_bounds = int(match[1])
    if match := _SIZES.search(line):
        step = int(match[2])
        test.sizes = (int(match[1]), *((step, 0) if match[3] == "factor" else (1, step)))
    killed = (test.sizes[0] or test.rows or test.ranks) and _KILLED.search(line)
    if test.failure is None and (killed or _FAILURE.search(line)):
        test.failure = line.strip()[:200]
    elif not killed and "CANCELLED" in line:  # its total is printed, and its processes had not ended
        test.lost = line.strip()[:200]
    if match := re.search(r"(?<!warmup )\biters: (\d+)", line):
        test.iterations = int(match[1])
    if "algbw" in line:
        test.rooted, test.cpu_time = " root " in line, "cputime" in line
        test.per_iteration = "i_min" in line


def _row(test: Test, line: str, number: int) -> Row | str | None:
    """Return a row; its text where only the beginning is there; None for any other line."""
    if (match := _ROW.search(line)) is None:
        return None
    values = list(itertools.takewhile(_NUMBER.fullmatch, line[match.end() :].split()))
    wide = 8 if test.per_iteration else 4
    head = " ".join([match[0], *(values or ["-1"] * test.rooted)])
    root = values.pop(0) if values and (test.rooted or values[0] == "-1" or len(values) % wide == 1) else "-1"
    halves = [values[start : start + 4] for start in (0, wide) if len(values) >= start + 4]
    try:
        size, count = (int(match[group].replace(",", "")) for group in (1, 2))
        readings = tuple(_reading(half) for half in halves) if size < 1 << 60 else ()
        row = Row(number, size, count, match[3], match[4] or "none", int(_number(root)), readings)
    except (ValueError, OverflowError):
        return head
    return row if readings and size and count else None if readings else head


def _reading(tokens: list[str]) -> Reading:
    time, algbw, busbw, wrong = (None if token.upper() == "N/A" else _number(token) for token in tokens)
    return Reading(time or 0.0, algbw or 0.0, busbw or 0.0, wrong, _half(tokens[1]), _half(tokens[2]))


def _number(token: str) -> float:
    """Commas part thousands where groups of three follow them, else they are decimal."""
    thousands = re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", token)
    return float(token.replace(",", "" if thousands else "."))


def _half(token: str) -> float:
    digits, _, exponent = token.lower().partition("e")
    decimals = len(digits.replace(",", ".").partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - decimals)


def _message(entry: Any) -> str | None:
    """The text in an entry of a log, or a line of it, as Docker and Cloud Logging write; None without."""
    with contextlib.suppress(*UNFIT):
        found = json.loads(entry) if isinstance(entry, str) else entry
        found = found.get("jsonPayload", found)
        return next((str(found[key]) for key in ("log", "message", "textPayload") if key in found), None)
    return None


def _of_json(first: str, rest: Iterator[str]) -> Test | Iterable[str]:
    """The test of `-J`, or the lines of entries of a log (`gcloud logging read` has the newest first)."""
    if _message(first) is not None:
        return (_message(line) or "" for line in itertools.chain([first], rest))
    text = first
    for line in rest:
        text += line
        if len(text) > MOST_JSON:
            raise DocumentError([f"more than {MOST_JSON >> 20} MiB of JSON; the text has no such limit"])
    try:
        document = json.loads(text)
        if isinstance(document, dict):
            return _test(document)
        return [_message(entry) or "" for entry in sorted(document, key=lambda e: str(e.get("timestamp")))]
    except UNFIT as error:
        rule = "must be the JSON that nccl-tests writes with -J, or an array of log entries, complete"
        raise DocumentError([f"not readable ({type(error).__name__}: {error}); {rule}"]) from error


def _test(document: Mapping[str, Any]) -> Test:
    config, test = document["config"], Test()
    if match := _TEST.search(f" {document['args'][0]} "):
        test.named = match[1]
    test.ranks = [(d["rank"], d["hostname"], d["device"], d["device_info"]) for d in config["devices"]]
    test.iterations = config["iterations"]
    for number, item in enumerate(document["results"], 1):
        halves = [item[name] for name in ("out_of_place", "in_place") if item.get(name)]
        test.cpu_time |= any("time" not in half for half in halves)
        readings = tuple(Reading(h.get("time", 0.0), h["alg_bw"], h["bus_bw"], h["nwrong"]) for h in halves)
        if item["size"] and readings:
            size, elements, kind, redop = (item[name] for name in ("size", "count", "type", "redop"))
            test.add(Row(number, size, elements, kind, redop, int(item["root"]), readings))
    if not test.rows:
        raise ValueError("no results")
    return test
