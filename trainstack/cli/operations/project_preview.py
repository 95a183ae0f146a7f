"""`trainstack preview --project`: the price and the policy verdict of a preview of any Pulumi project."""

import datetime
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from infra.errors import Problem, raise_all
from infra.exit_codes import ExitCode
from policies.judge import Judge
from policies.sources import preview
from policies.sources.files import read_file
from rehearsal.projects import run
from trainstack.cli.output import print_json, print_lines, print_table
from trainstack.prices.pricing import priced
from trainstack.prices.report import HEAD, SCHEMA, PriceLimits, PriceReport

_FIX = "Name the folder of a Pulumi project, or a file of `pulumi preview --json --show-sames`."


@contextmanager
def preview_file(given: Path, stack: str = "", settings: Sequence[str] = ()) -> Iterator[Path]:
    """The file with a preview: the given one, or that of a project in its rehearsal, as long as it is used.

    Raises UserError where the preview of the project fails.
    """
    if not given.is_dir():
        yield given
        return
    planned = run.planned(given, run.Options(stack, settings))
    with tempfile.TemporaryDirectory() as folder:  # only its owner can read it
        path = Path(folder, f"{given.resolve().name}.json")
        path.write_text(json.dumps(planned), encoding="utf-8")
        yield path


def show(given: Path, stack: str, settings: Sequence[str], limits: PriceLimits, *, as_json: bool) -> ExitCode:
    """Print prices and verdict; returns the exit code that the limits decide.

    Raises UserError for settings beside a file, which has its own.
    """
    if not given.is_dir():
        options = [("--stack", stack), *(("--config", one) for one in settings)]
        rule, fix = (
            "is of a project, and a file was given",
            "Leave it out, or name the folder of the project.",
        )
        raise_all(
            [
                Problem(name, value, rule, fix, "--project", code="option-conflict")
                for name, value in options
                if value
            ]
        )
    with preview_file(given, stack, settings) as path:
        report = _of_file(path, limits)
    if as_json:
        print_json(SCHEMA, report.document())
    else:
        print_table(HEAD, report.rows(), right=HEAD[2:5])
        print_lines(report.lines())
    return report.code


def _of_file(path: Path, limits: PriceLimits) -> PriceReport:
    data, today = read_file(path, _FIX), datetime.date.today()
    after = preview.of_data(data, str(path), allow_empty=True)
    before = preview.of_data(data, str(path), before=True, allow_empty=True)
    judge = Judge.read(None, None, today, None)
    outcomes, _ = judge.judged(after)
    results = Counter[str](one.result for one in outcomes if one.result != "not-applicable")
    return PriceReport(path.name, priced(before, today), priced(after, today), results, limits)
