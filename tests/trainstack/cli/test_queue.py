"""`trainstack queue` where it has nothing to ask, and its rules."""

import json
from pathlib import Path

import pytest

from infra.errors import UserError
from rehearsal.client import Rehearsal
from tests.trainstack.cli.command import run
from tests.trainstack.cli.test_access import EXPORTED
from trainstack.cli import queue


def test_the_rules_need_a_stack_file_and_nothing_else() -> None:
    code, said = run("queue", "rules", "-s", "dev-aws")
    assert code == 0
    assert "Research is guaranteed" in said and "Who goes first:" in said


def test_without_a_stack_it_says_so() -> None:
    with pytest.raises(UserError, match=r"--stack: names the stack\. Add -s NAME\."):
        run("queue")


def test_a_team_that_does_not_exist_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "deployed", lambda *_, **__: (EXPORTED, None))
    with pytest.raises(UserError, match=r"is no team of the stack.*Teams are Vision Lab"):
        run("queue", "-s", "dev", "--team", "Nobody")


def test_the_emulated_kubernetes_has_no_queue_that_moves(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no queue that moves.*--rehearse --cluster real"):
        queue.rehearsed_kubeconfig(Rehearsal(tmp_path), "dev-aws")
    (tmp_path / "kubernetes.json").write_text(json.dumps({"cluster": "real", "provider": "ours"}))
    assert queue.rehearsed_kubeconfig(Rehearsal(tmp_path), "dev-aws").parent.parent == tmp_path
