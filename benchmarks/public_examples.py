"""Rehearses every Pulumi project in Python below a folder, such as a checkout of github.com/pulumi/examples.

    .venv/bin/python benchmarks/public_examples.py DIR [pattern] [--seconds 120] [--reports FOLDER]
    .venv/bin/python benchmarks/public_examples.py DIR [pattern] --audit FILE [--form document|events]

Each project (of those whose folder matches the pattern, such as `aws-py-*`) is rehearsed in a home of its own
that is removed afterwards, with what anybody sets first: region, project and zone; a setting that it then
misses is made up. A project `passes` when it is created, left alone by a second update, and deleted without a
rest. It is `refused`, with the reason, when it needs what only its user has (a package, a file, a meaningful
setting) or forbids its own deletion; `not emulated` names what the rehearsal lacks; of an `unsteady` one
a second, unchanged update changes something.

With `--audit` it is only created, and its state audited by the whole policy pack; with `--form` it is
not even created, and its preview audited. FILE gets a line of JSON for each outcome that is neither a
pass nor not applicable. A project is `audited`, or `crashed`: the audit ended in an internal error or could
not read what the engine wrote, or a rule failed by itself. One whose `up` ends half-way is `partial`.
"""

import argparse
import collections
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from infra.errors import UserError  # noqa: E402
from rehearsal.client import Rehearsal  # noqa: E402
from rehearsal.projects import project as projects  # noqa: E402

SETTINGS = (
    "aws:region=us-east-1",
    "gcp:project=examples-rehearsed",
    "gcp:region=us-central1",
    "gcp:zone=us-central1-a",
)
_TIMEOUT_S = 120.0
_MISSING = re.compile(r"Missing required configuration variables? '([^']+)'")
_MADE_UP = (
    (r"^(is|enable|use)(?![a-z])", "false"),
    (r"(?i)(count|size|port|memory|cpu|number)$", "1"),
    (r"(?i)(password|secret|token)", "Example-password-1"),
    (r"(?i)cidr_?blocks$", '["10.0.1.0/24", "10.0.2.0/24"]'),
    (r"(?i)cidr", "0.0.0.0/0"),
    (r"(?i)arn$", "arn:aws:iam::123456789012:role/example"),
    (r"(?i)(domain|host)", "www.rehearsed.org"),
    (r"(?i)email", "user@example.com"),
    ("", "example"),
)
_MOST_SETTINGS = 8
_GRACE_S = 10.0
# Requirements of a project that only its user could provide, by messages of reports.
_NEEDS = (
    r"Missing required configuration variables? '[^']+'",
    r"Stack reference \S+ does not exist",
    r'[Uu]nknown stack "[^"]*"',
    r"No such file or directory: '[^']+'",
    r"couldn't read \w+ path '[^']+'",
    # The program itself forbids its deletion, by a property or by the provider's default for it.
    r"deletion_?[pP]rotection is set to true",
    r"import [\w.]+ in \S+: is not installed",
)


@dataclass(frozen=True)
class Verdict:
    """Outcome of one project."""

    project: str
    kind: str
    why: str
    seconds: float
    report: str


@dataclass(frozen=True)
class Audited:
    """What is audited of each project, and the file that gets the outcomes."""

    file: Path
    form: str
    """`state`, or a form of preview: `document`, `events`."""


def main(folder: Path, pattern: str, timeout_s: float, reports: Path | None, audited: Audited | None) -> int:
    verdicts = []
    for project in found(folder, pattern):
        name = str(project.relative_to(folder))
        verdicts.append(rehearse(project, name, timeout_s, audited))
        if reports:
            reports.mkdir(parents=True, exist_ok=True)
            (reports / f"{name.replace('/', '.')}.txt").write_text(verdicts[-1].report)
        print(described(verdicts[-1]), flush=True)
    counts = collections.Counter(verdict.kind for verdict in verdicts)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()) or "no project")
    return 1 if any(counts[kind] for kind in ("fails", "unsteady", "timeout", "crashed")) else 0


def found(folder: Path, pattern: str) -> list[Path]:
    """The projects in Python, by name."""
    result = []
    for file in sorted(folder.rglob("Pulumi.yaml")):
        matches = fnmatch.fnmatch(str(file.parent.relative_to(folder)), pattern)
        try:
            if matches:
                result.append(projects.read(file.parent).folder)
        except UserError:
            continue  # another language
    return result


def rehearse(project: Path, name: str, timeout_s: float, audited: Audited | None = None) -> Verdict:
    """Run one project's life, or as much as an audit needs; no process of it is left."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="trainstack-example-", ignore_cleanup_errors=True) as work:
        # The SDKs' schemas are read once for all.
        (Path(work) / "cache").symlink_to(ROOT / ".trainstack" / "cache")
        home = Path(work) / "home"
        settings, made_up = list(SETTINGS), dict[str, str]()
        while True:
            run = _command(project, settings)
            try:
                if audited:
                    kind, why, text = _audited_once(run, name, home, timeout_s, audited)
                else:
                    kind, why, text = _once(run, home, timeout_s)
            finally:
                _end(home)
            missing = [key for key in _MISSING.findall(re.sub(r"\s+", " ", text)) if key not in made_up]
            if kind != "refused" or not missing or len(made_up) >= _MOST_SETTINGS:
                break
            made_up |= {key: _value(key.rpartition(":")[2]) for key in missing}
            settings = [*SETTINGS, *(f"{key}={value}" for key, value in made_up.items())]
    if made_up and kind != "timeout":
        why = "; ".join(filter(None, [why, f"made up: {', '.join(made_up)}"]))
    return Verdict(name, kind, why, time.perf_counter() - start, text)


def _once(run: list[str], home: Path, timeout_s: float) -> tuple[str, str, str]:
    """Outcome, reason and report of one run."""
    code, text = _trainstack(run, home, timeout_s)
    return ("timeout", _last_line(text), text) if code is None else (*judged(code, text), text)


def _audited_once(
    run: list[str], name: str, home: Path, timeout_s: float, audited: Audited
) -> tuple[str, str, str]:
    """The same of an audit. Outcomes go to the file."""
    file = home.parent / "audited.json"
    if audited.form == "state":
        code, text = _trainstack([*run, "--", "up", "--yes", "--skip-preview"], home, timeout_s)
        _trainstack([*run, "--", "stack", "export", "--file", str(file)], home, timeout_s)
    else:
        streamed = {"PULUMI_ENABLE_STREAMING_JSON_PREVIEW": "true"} if audited.form == "events" else {}
        preview = [*run, "--", "preview", "--json", "--show-sames"]
        code, text = _trainstack(preview, home, timeout_s, streamed)
        # Before what the engine writes may stand notes of the rehearsal, and after it warnings.
        written = re.search(r"^\{.*\}$", text, re.MULTILINE | re.DOTALL)
        file.write_text(written[0] if written else "")
    kind, why = ("timeout", _last_line(text)) if code is None else judged(code, text)
    if kind != "passes" and (audited.form != "state" or not file.exists() or _MISSING.search(text)):
        return kind, why, text
    option = "--state" if audited.form == "state" else "--preview"
    audit = ["audit", option, str(file), "--format", "json", "--allow-empty"]
    said, result = _trainstack(audit, home, timeout_s)
    if said not in (0, 3, 4):
        return "crashed", _last_line(result), text + result
    outcomes = json.loads(result)["outcomes"]
    counts = collections.Counter(row["result"] for row in outcomes)
    rows = [row for row in outcomes if row["result"] not in ("pass", "not-applicable")]
    with audited.file.open("a") as stream:
        for row in ({"result": "counts", "counts": counts}, *rows):
            stream.write(json.dumps({"project": name, "up": kind, **row}) + "\n")
    if any("the rule itself failed" in row["message"] for row in rows):
        return "crashed", "a rule failed by itself", text + result
    return ("audited" if kind == "passes" else "partial"), f"{dict(counts)} {why}".rstrip(), text


def _command(project: Path, settings: list[str]) -> list[str]:
    command = ["rehearse", "run", str(project)]
    if stack := _stack(project):
        command += ["--stack", stack]
    for setting in settings:
        command += ["--config", setting]
    return command


def _trainstack(
    arguments: list[str], home: Path, timeout_s: float, environment: dict[str, str] | None = None
) -> tuple[int | None, str]:
    """Exit code, None after the time limit, and output."""
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("trainstack")), *arguments],
        # Some programs name what they make after the user who is logged in.
        env={
            "USER": "user",
            **os.environ,
            "TRAINSTACK_REHEARSAL_HOME": str(home),
            "COLUMNS": "400",
            **(environment or {}),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    code = None
    try:
        text = process.communicate(timeout=timeout_s)[0]
        code = process.returncode
    except subprocess.TimeoutExpired as expired:
        text = expired.output.decode(errors="replace") if expired.output else ""
        process.send_signal(signal.SIGINT)  # orderly, if possible
    finally:
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return code, text


def _value(key: str) -> str:
    return next(value for pattern, value in _MADE_UP if re.search(pattern, key))


def judged(code: int, text: str) -> tuple[str, str]:
    """The kind of outcome and its reason, from the exit code and the report."""
    flat = re.sub(r"\s+", " ", text)
    if code == 0:
        return "passes", ""
    lacks = re.search(r"not emulated +(?!nothing| )([^\n]+)", text)
    if lacks:
        return "not emulated", lacks[1]
    needs = [match[0] for pattern in _NEEDS for match in re.finditer(pattern, flat)]
    if needs:
        return "refused", "; ".join(dict.fromkeys(needs))
    if "resources change although nothing was changed" in flat:
        return "unsteady", ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if re.search(r"[Ee]rror|refus|[Ee]xception|change although|left", line)]
    return "fails", (causes or lines or [f"exit code {code}"])[-1]


def described(verdict: Verdict) -> str:
    """One row of the table."""
    return f"{verdict.project:44} {verdict.kind:13} {verdict.seconds:6.1f} s  {verdict.why[:200]}".rstrip()


def _stack(project: Path) -> str:
    """The first stack where the project has several and none is meant in particular."""
    read = projects.read(project)
    try:
        return read.choose("")
    except UserError:
        return next(iter(read.stacks()))


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def _end(home: Path) -> None:
    """End what runs for this home: its engine and program, the daemon and its workloads."""
    ours = [one for one in psutil.process_iter() if _belongs(one, home)]
    for one in ours:
        one.terminate()
    for one in psutil.wait_procs(ours, timeout=_GRACE_S)[1]:
        one.kill()
    Rehearsal(home).stop()


def _belongs(process: psutil.Process, home: Path) -> bool:
    try:
        here = process.environ().get("TRAINSTACK_REHEARSAL_HOME") == str(home)
        return here or any(str(home) in word for word in process.cmdline())
    except psutil.Error:
        return False


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("pattern", nargs="?", default="*")
    parser.add_argument("--seconds", type=float, default=_TIMEOUT_S, help="the most that one may take")
    parser.add_argument("--reports", type=Path, help="a folder for the whole report of each")
    parser.add_argument(
        "--audit", type=Path, metavar="FILE", help="audit each; lines of JSON are added to it"
    )
    forms = ("state", "document", "events")
    parser.add_argument(
        "--form", choices=forms, default="state", help="what is audited: the state or a preview"
    )
    return parser.parse_args()


if __name__ == "__main__":
    given = _arguments()
    audits = Audited(given.audit, given.form) if given.audit else None
    sys.exit(main(given.folder.resolve(), given.pattern, given.seconds, given.reports, audits))
