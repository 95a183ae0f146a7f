"""The life of a stack without a cluster on the emulated Google Cloud, by the real engine."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from rehearsal.client import Rehearsal
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import NOTHING, UNCHANGED, UP, Done, Seen, audited, do, native, seen

STACK = "small-gcp"
pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Life:
    """What each command said."""

    made: Seen
    verdict: str
    """Of the custom job that gates the deploy."""
    status: str
    preview: str
    unchanged: Seen
    audited: Done
    refused: Done
    destroyed: Seen


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    for home in life.home(tmp_path_factory.mktemp(STACK)):
        config = life.beside_others(home, STACK)
        made = seen(home, native(home, *UP, "--config-file", config, stack=STACK))
        assert made.done.returncode == 0, made.output
        verdict = json.loads(max(made.results).read_text())["verdict"]
        status = do(home, "status", stack=STACK).stdout
        preview = do(home, "preview", stack=STACK).stdout
        unchanged = seen(home, native(home, *UNCHANGED, "--config-file", config, stack=STACK))
        policed = audited(home, STACK)
        refused = do(home, "queue", stack=STACK)
        ended = do(home, "destroy", "--yes", stack=STACK)
        Rehearsal(home).wait_until_idle()
        yield Life(
            made=made,
            verdict=verdict,
            status=status,
            preview=preview,
            unchanged=unchanged,
            audited=policed,
            refused=refused,
            destroyed=seen(home, ended),
        )


def test_training_on_two_machines_opens_the_gate(lived: Life) -> None:
    assert lived.verdict in ("PASS", "INCONCLUSIVE")


def test_the_stack_is_made_and_says_who_may_spend_what(lived: Life) -> None:
    assert "vertex for 3 people" in lived.status
    assert "person eve: $500 a month, stops what runs" in lived.status
    assert "person     ada (vision): small-gcp-job-ada@example-ml-jobs.iam" in lived.status


def test_a_preview_itemises_what_an_idle_stack_costs(lived: Life) -> None:
    for item in (
        "Cloud SQL db-f1-micro",
        "disks of notebooks (3 of 170 GiB)",
        "KMS keys (1)",
        "jobs on l4 (",
    ):
        assert item in lived.preview, lived.preview


def test_an_unchanged_up_changes_nothing(lived: Life) -> None:
    assert lived.unchanged.done.returncode == 0, lived.unchanged.output
    assert lived.unchanged.resources == lived.made.resources


def test_the_state_keeps_every_rule_without_a_waiver(lived: Life) -> None:
    outcomes = json.loads(lived.audited.stdout)["outcomes"]
    assert [one for one in outcomes if one["result"] not in ("pass", "not-applicable")] == []
    assert lived.audited.returncode == 0


def test_a_command_for_clusters_says_that_there_is_none(lived: Life) -> None:
    assert lived.refused.returncode == 2
    assert "has no cluster" in lived.refused.stderr and "Traceback" not in lived.refused.stderr


def test_destroy_leaves_no_resource_and_no_process(lived: Life) -> None:
    assert lived.destroyed.done.returncode == 0, lived.destroyed.output
    # The data access log of Cloud Storage is a setting of the project, which outlives the stack.
    assert lived.destroyed.resources == {**NOTHING, "gcp": 1}
    assert lived.destroyed.processes == []
