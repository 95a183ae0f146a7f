"""The search finds settings, goes on after an interruption, and is a family of runs in MLflow."""

import importlib.util
import json
import math
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from mlflow import MlflowClient

from tests.examples.conftest import EXAMPLES, Make, variables

SMALL = ("--trials", "4", "--steps", "8", "--base-steps", "5")


def module(name: str) -> ModuleType:
    """A module of the template, by its path: templates are no packages."""
    spec = importlib.util.spec_from_file_location(f"sweep_{name}", EXAMPLES / "sweep" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found  # dataclasses look there
    spec.loader.exec_module(found)
    return found


halving, journal = module("halving"), module("journal")


def trained(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("trial ")]


def test_a_trial_has_the_options_and_says_the_figure_of_the_services_search(tmp_path: Path) -> None:
    search = tomllib.loads((EXAMPLES / "sweep" / "sweep.toml").read_text())
    given = {"lr": "0.01", "rank": "4", "alpha": "8.0"}
    assert set(search["parameters"]) == set(given)
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    words += ["--steps", "1", "--base-steps", "1", "--checkpoints", str(tmp_path)]
    folder = EXAMPLES / "sweep"
    done = subprocess.run(
        [sys.executable, "trial.py", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (loss,) = re.findall(search["objective"]["regex"], done.stdout)
    assert float(loss) > 0


def test_a_search_goes_on_where_it_was_killed(template: Make, store: MlflowClient) -> None:
    job = template("sweep", "sweep.py", **variables(store))
    node = job.start(SMALL)
    lines = [node.line("trial 0 "), node.line("trial 1 ")]
    node.kill()
    known = [json.loads(line) for line in (job.checkpoints / "journal.jsonl").read_text().splitlines()[1:]]
    assert [entry["trial"] for entry in known[:2]] == [0, 1]
    code, said = job.run(*SMALL)
    assert code == 0 and f"goes on after {len(known)} results" in said, said
    assert len(trained(said)) == 4 + 2 + 1 - len(known)
    assert not any(line.strip() in said for line in lines), "nothing that is known is trained again"

    best = json.loads((job.base() / "output" / "data" / "best.json").read_text())
    entries = [json.loads(line) for line in (job.checkpoints / "journal.jsonl").read_text().splitlines()[1:]]
    assert len(entries) == 7 and entries[-1]["trial"] == best["trial"] and entries[-1]["steps"] == 8
    parent = store.get_run(job.document()["mlflow"]["run_id"])
    assert parent.data.metrics["best_loss"] == pytest.approx(best["loss"])
    family = store.search_runs(
        [parent.info.experiment_id], f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'"
    )
    assert sorted(str(run.info.run_name) for run in family) == [f"trial-{trial}" for trial in range(4)]
    winner = next(run for run in family if run.info.run_name == f"trial-{best['trial']}")
    history = store.get_metric_history(winner.info.run_id, "loss")
    assert [point.step for point in history] == [2, 4, 8]
    assert float(winner.data.params["lr"]) == pytest.approx(best["settings"]["lr"])


def test_a_stop_keeps_what_is_found_and_other_arguments_are_refused(template: Make) -> None:
    job = template("sweep", "sweep.py")
    node = job.start(["--trials", "4", "--steps", "200", "--base-steps", "5"])
    node.line("trial 0 ")
    node.terminate()
    code, said = node.finish()
    assert code == 143 and "results, which are kept" in said, said
    code, said = job.run(*SMALL)
    assert code == 1 and "is of another search" in job.failure() and "Traceback" not in said


def test_rounds_halve_the_trials_and_double_the_steps() -> None:
    found = [(rung.trials, rung.steps) for rung in halving.rungs(8, 80)]
    assert found == [(8, 10), (4, 20), (2, 40), (1, 80)]
    assert [(rung.trials, rung.steps) for rung in halving.rungs(1, 5)] == [(1, 5)]
    assert [(rung.trials, rung.steps) for rung in halving.rungs(6, 2)] == [(6, 1), (3, 1), (1, 2)]
    with pytest.raises(ValueError, match="must be at least 1"):
        halving.rungs(0, 5)


def test_settings_depend_on_seed_and_trial_alone() -> None:
    assert halving.drawn(3, 1) == halving.drawn(3, 1) != halving.drawn(4, 1)
    drawn = [halving.drawn(trial, 0) for trial in range(200)]
    assert all(1e-4 <= one["lr"] <= 10**-1.5 and one["rank"] in (2, 4, 8, 16) for one in drawn)
    assert 40 < sum(one["lr"] < 10**-2.75 for one in drawn) < 160, "log-uniform: half are below the middle"


def test_a_trial_that_came_to_no_number_is_the_worst() -> None:
    assert halving.survivors({0: math.nan, 1: 2.0, 2: 1.0, 3: math.inf}, 2) == [2, 1]


def test_half_a_line_of_a_journal_is_left_out(tmp_path: Path) -> None:
    path, about = tmp_path / "journal.jsonl", {"trials": 2}
    kept = journal.Journal(path, about)
    kept.add(journal.Entry(0, 10, 1.5, "run"))
    path.write_text(path.read_text() + '{"trial": 1, "st')
    again = journal.Journal(path, about)
    assert again.loss(0, 10) == 1.5 and again.run_of(0) == "run" and again.loss(1, 10) is None
    again.add(journal.Entry(1, 10, 2.5))
    assert [entry.trial for entry in journal.Journal(path, about).entries] == [0, 1]
    with pytest.raises(ValueError, match="another search"):
        journal.Journal(path, {"trials": 3})
