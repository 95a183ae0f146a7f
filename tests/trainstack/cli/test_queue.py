"""`trainstack queue` without a cluster, and its rules."""

import json
from pathlib import Path

import pytest

from infra.errors import UserError
from rehearsal.client import Rehearsal
from tests.trainstack.cli.command import run, run_json
from tests.trainstack.cli.test_access import EXPORTED
from trainstack.cli import queue


def test_the_rules_need_only_a_stack_file() -> None:
    code, text = run("queue", "rules", "-s", "dev-aws")
    _, found = run_json("queue", "rules", "-s", "dev-aws")
    assert code == 0 and "Research is guaranteed" in text
    assert [f"{row['title']}:" for row in found["sections"]] == [
        line for line in text.splitlines() if not line.startswith(" ")
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "path"),
    [((), "option-missing", "--stack"), (("-s", "dev", "--team", "Vision"), "unknown-team", "--team")],
)
def test_bad_input(arguments: tuple[str, ...], code: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "deployed", lambda *_, **__: (EXPORTED, None))
    with pytest.raises(UserError) as caught:
        run("queue", *arguments)
    assert caught.value.codes == ((code, path),)


def test_a_rehearsed_queue_needs_a_real_control_plane(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        queue.rehearsed_kubeconfig(Rehearsal(tmp_path), "dev-aws")
    assert caught.value.codes == (("queue-needs-control-plane", "--rehearse"),)
    (tmp_path / "kubernetes.json").write_text(json.dumps({"cluster": "real", "provider": "ours"}))
    assert queue.rehearsed_kubeconfig(Rehearsal(tmp_path), "dev-aws").parent.parent == tmp_path
