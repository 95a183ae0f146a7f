"""`trainstack queue` without a cluster, and its rules."""

import json
from pathlib import Path

import pytest

from infra.errors import UserError
from rehearsal.client import Rehearsal
from tests.trainstack.cli.command import run, run_json
from tests.trainstack.cli.test_access import EXPORTED
from trainstack.cli import scope


def test_the_rules_need_only_a_stack_file() -> None:
    code, text = run("queue", "rules", "-s", "dev-aws")
    _, found = run_json("queue", "rules", "-s", "dev-aws")
    assert code == 0 and "Research is guaranteed" in text
    assert [f"{row['title']}:" for row in found["sections"]] == [
        line for line in text.splitlines() if not line.startswith(" ")
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "path"),
    [
        (("--rehearse",), "option-missing", "--stack"),
        (("-s", "dev", "--team", "Vision"), "unknown-team", "--team"),
        (("-s", "dev", "--context", "dev"), "option-conflict", "--context"),
        (("-s", "dev", "-A"), "option-conflict", "--all-namespaces"),
        (("--team", "Vision", "--namespace", "team-vision"), "option-conflict", "--namespace"),
        (("--kubeconfig", "/nowhere/research.yaml"), "kubeconfig-missing", "--kubeconfig"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], code: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "with_cluster", lambda *_, **__: (EXPORTED, None))
    with pytest.raises(UserError) as caught:
        run("queue", *arguments)
    assert caught.value.codes == ((code, path),)


def test_a_rehearsed_queue_needs_a_real_control_plane(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        scope.rehearsed_kubeconfig(Rehearsal(tmp_path), EXPORTED)
    assert caught.value.codes == (("queue-needs-control-plane", "--rehearse"),)
    (tmp_path / "kubernetes.json").write_text(json.dumps({"cluster": "real", "provider": "ours"}))
    plane = tmp_path / "control-plane" / "dev-aws.us-east-1.123456789012"
    plane.mkdir(parents=True)
    (plane / "access.json").write_text(json.dumps({"server": "https://127.0.0.1:1234"}))
    exported = EXPORTED.model_copy(update={"kubeconfig": '{"server": "https://127.0.0.1:1234"}'})
    assert scope.rehearsed_kubeconfig(Rehearsal(tmp_path), exported).parent == plane
