"""The Pulumi program shows what it refuses as a user error, whichever part of it refuses."""

import subprocess
import sys

import pulumi
import pytest

import stacks.__main__ as program
from infra.engine.stack import OperationOutcome
from infra.errors import Problem, UserError
from infra.stackspec import load_file

PROBLEM = Problem("layout.pools[0].zones", ["a", "b"], "a rule", "A fix.", code="a-code")


def refuse(*_: object) -> None:
    raise UserError([PROBLEM])


@pytest.mark.parametrize("part", ["stackspec.load", "compose"])
def test_what_is_refused_is_a_message_with_path_and_fix(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_file("dev-aws")
    monkeypatch.setattr("stacks.__main__.stackspec.load", lambda *_: loaded)
    monkeypatch.setattr(f"stacks.__main__.{part}", refuse)
    with pytest.raises(pulumi.RunError) as caught:
        program.main()
    assert str(PROBLEM) in str(caught.value)
    assert caught.value.__suppress_context__
    assert OperationOutcome(succeeded=False, errors=[str(caught.value)]).refused


def test_other_failures_are_not_refusals_of_input() -> None:
    assert not OperationOutcome(succeeded=False, errors=["creating the cluster failed", ""]).refused


def test_the_program_begins_without_any_service_of_an_sdk() -> None:
    """Those that a stack needs come with its cloud and layout; all of them together are seconds."""
    look = (
        "import sys, stacks.__main__\n"
        "print({'pulumi_aws.ec2', 'pulumi_gcp.compute', 'pulumi_kubernetes.core'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", look], check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")
