"""Shared parts of the lives of stacks without a cluster, for every cloud."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra import stackspec
from infra.engine.stack import EngineStack
from rehearsal.client import Rehearsal
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import ROOT, UNCHANGED, UP, Done, Seen, audited, do, native, seen
from trainstack.cli.operations.jobs_in_use import jobs_in_use
from trainstack.plans.managed_jobs import LOSES

EXAMPLES = ROOT / "examples"
ADA = ("--on", "l4", "--max-hours", "0.1", "--as", "ada", "--dataset", "synthetic")
OTHERS = ("evaluate", "ddp", "sweep")
# The smallest settings with which the loss still decreases.
SMALL = ("--base-steps", "10", "--batch", "8")
_PATIENCE_S = 90


@dataclass(frozen=True)
class Begun:
    """Output of each command up to the first runs."""

    made: Seen
    result: Mapping[str, Any]
    """Result of the job that gates the deploy."""
    status: str
    unchanged: Seen
    audited: Done


def begin(home: Path, stack: str) -> Begun:
    """A deploy, another one without a change, and the output of commands."""
    config = life.beside_others(home, stack)
    made = seen(home, native(home, *UP, "--config-file", config, stack=stack))
    # Without a passed gate there is nothing further to check.
    assert made.done.returncode == 0, made.output
    return Begun(
        made=made,
        result=json.loads(max(made.results).read_text()),
        status=do(home, "status", stack=stack).stdout,
        unchanged=seen(home, native(home, *UNCHANGED, "--config-file", config, stack=stack)),
        audited=audited(home, stack),
    )


def templates(
    home: Path, stack: str, finetune: Callable[[], Done], others: Sequence[str] = OTHERS
) -> Mapping[str, Done]:
    """The first run of templates; the spot machine of the first one is interrupted."""

    def run(template: str, *arguments: str) -> Done:
        return do(home, "run", str(EXAMPLES / template), *ADA, *arguments, stack=stack)

    tuned = finetune()
    model = re.search(r"^model +(\w+://\S+?)(?:/model\.tar\.gz)?$", tuned.stdout, re.MULTILINE)
    assert model, tuned.stdout + tuned.stderr
    arguments = {
        "evaluate": ("--script", "evaluate.py", "--data", f"{model[1]}/", "--task", "evaluation"),
        "ddp": ("--nodes", "2", "--", "--epochs", "1"),
        "sweep": ("--script", "sweep.py", "--", "--trials", "2", "--steps", "8", "--base-steps", "10"),
    }
    return {"finetune": tuned, **{name: run(name, *arguments[name]) for name in others}}


def endless(home: Path, stack: str, folder: Path) -> str:
    """The name of an endless job of eve."""
    folder.mkdir()
    (folder / "train.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(3600)\n")
    eve = ("--on", "l4x4", "--max-hours", "0.1", "--as", "eve", "--dataset", "none", "--detach")
    started = do(home, "run", str(folder), *eve, stack=stack)
    found = re.search(r"^run +(\S+)$", started.stdout, re.MULTILINE)
    assert found, started.stdout + started.stderr
    return found[1]


def announced(home: Path, stack: str) -> Mapping[str, Sequence[str]]:
    """Runs that lose their identity, as `up` shows them for the stack file without one person or team."""
    rehearsal = Rehearsal(home)
    engine, spec = EngineStack(stack, rehearsal.environment()), stackspec.load_file(stack).spec
    layout: Any = spec.layout
    found = {}
    for left in ("ada", "eve", "language"):
        people = [one for one in layout.people if left not in (one.name, one.team)]
        after = spec.model_copy(update={"layout": layout.model_copy(update={"people": tuple(people)})})
        with jobs_in_use(engine, rehearsal, after) as jobs:
            assert {effect for effect, _ in jobs.lines()} <= {LOSES}
            found[left] = [text.split()[0] for _, text in jobs.lines()]
    return found


def grown(home: Path, stack: str, as_medium: Callable[[Any], None]) -> list[Mapping[str, Any]]:
    """The steps of a preview with the next larger profile."""
    larger = life.beside_others(home, stack, as_medium)
    preview = native(home, "preview", "--json", "--config-file", larger, stack=stack)
    assert preview.returncode == 0, preview.stdout + preview.stderr
    steps: list[Mapping[str, Any]] = json.loads(preview.stdout)["steps"]
    return steps


def kind(step: Mapping[str, Any]) -> str:
    """Resource type of a step."""
    return str(step["urn"].split("::")[2].split("$")[-1])


def end(home: Path, stack: str) -> Seen:
    """Resources left at the end."""
    ended = do(home, "destroy", "--yes", stack=stack)
    Rehearsal(home).wait_until_idle()
    return seen(home, ended)


def records(home: Path) -> list[dict[str, Any]]:
    """Records of the function about jobs that it stopped."""
    found = sorted(home.glob("*/*artifacts*/audit/**/*.json"))
    return [json.loads(file.read_text()) for file in found]


def until(holds: Callable[[], bool], patience_s: float = _PATIENCE_S) -> None:
    """Wait for something."""
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.3)


class Lives:
    """Tests of every such life; `lived.begun` has results of commands, `lived.ran` the first runs."""

    stack: str
    says: tuple[str, ...]
    """Lines of `status`."""
    price: str
    """Price of a run of 0.1 h."""
    stays: Mapping[str, int] = life.NOTHING
    """Resources that outlive the stack."""

    def test_training_on_two_machines_opens_the_gate_and_is_recorded(self, lived: Any) -> None:
        result = lived.begun.result
        assert result["verdict"] in ("PASS", "INCONCLUSIVE")
        assert len({str(rank["host"]) for rank in result["cluster"]["ranks"]}) == 2
        assert result["mlflow"]["synced"] is True, result["mlflow"]

    def test_status_lists_members_and_budgets(self, lived: Any) -> None:
        shown = " ".join(lived.begun.status.split())
        for line in (*self.says, "person eve: $500 a month, stops jobs over budget"):
            assert line in shown, lived.begun.status

    def test_each_template_runs_to_its_end(self, lived: Any) -> None:
        for template, done in lived.ran.items():
            name = f"{self.stack}-ada-{template}-"
            assert done.returncode == 0, done.stdout + done.stderr
            assert f"\nCOMPLETED  {name}" in done.stdout
            assert re.search(rf"^{name}.* completed ", lived.runs, re.MULTILINE), lived.runs

    def test_a_run_shows_its_price_and_its_budgets_before_it_starts(self, lived: Any) -> None:
        output = lived.ran["finetune"].stdout
        assert f"at most {self.price}" in output, output
        assert "team vision: $" in output and "$3,000.00" in output

    def test_an_interrupted_spot_machine_is_shown_and_costs_no_result(self, lived: Any) -> None:
        output = lived.ran["finetune"].stdout
        assert "interrupted" in output
        assert output.count(" training (") + output.count(" training\n") == 2, output
        assert "held-out loss" in output

    def test_an_unchanged_up_changes_nothing_and_trains_nothing(self, lived: Any) -> None:
        unchanged, made = lived.begun.unchanged, lived.begun.made
        assert unchanged.done.returncode == 0, unchanged.output
        assert unchanged.resources == made.resources
        assert unchanged.results == made.results != {}

    def test_the_state_passes_every_rule_without_a_waiver(self, lived: Any) -> None:
        outcomes = json.loads(lived.begun.audited.stdout)["outcomes"]
        assert [one for one in outcomes if one["result"] not in ("pass", "not-applicable")] == []
        assert lived.begun.audited.returncode == 0

    def test_a_change_announces_running_runs_of_a_person_or_a_team_that_it_removes(self, lived: Any) -> None:
        assert lived.announced == {"ada": [], "eve": [lived.endless], "language": [lived.endless]}

    def test_destroy_leaves_no_resource_and_no_process(self, lived: Any) -> None:
        assert lived.destroyed.done.returncode == 0, lived.destroyed.output
        assert lived.destroyed.resources == self.stays
        assert lived.destroyed.processes == []
