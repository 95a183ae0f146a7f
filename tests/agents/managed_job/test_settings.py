"""Settings of a job."""

import pytest

from agents.managed_job import settings
from smoke_training.reader import DocumentError


def test_every_fault_is_said_at_once() -> None:
    wrong = {
        "TRAINSTACK_ARGUMENTS": '{"a": 1}',
        "TRAINSTACK_GPUS": "many",
        "TRAINSTACK_COST_PER_HOUR": "-1",
        "TRAINSTACK_MASTER_PORT": "nan",
    }
    with pytest.raises(DocumentError) as caught:
        settings.read(wrong)
    names = [problem.partition(":")[0] for problem in caught.value.problems]
    assert names == ["TRAINSTACK_SCRIPT", *wrong]


def test_a_job_needs_no_more_than_a_script() -> None:
    found = settings.read({"TRAINSTACK_SCRIPT": "train.py", "TRAINSTACK_OWNER": " "})
    assert (found.arguments, found.gpus, found.usd_per_hour) == ((), 0, None)
    assert found.missing == ["owner", "dataset", "code_version"]


@pytest.mark.parametrize(
    ("arguments", "parameters"),
    [
        (
            ("--lr", "3e-4", "--bf16", "--seed=1", "data"),
            {"lr": "3e-4", "bf16": "true", "seed": "1", "arguments": "data"},
        ),
        (("--bf16", "--lr", "-1"), {"bf16": "true", "lr": "-1"}),
        (("one", "two"), {"arguments": "one two"}),
        ((), {}),
    ],
)
def test_arguments_become_parameters(arguments: tuple[str, ...], parameters: dict[str, str]) -> None:
    assert settings.parameters(arguments) == parameters
