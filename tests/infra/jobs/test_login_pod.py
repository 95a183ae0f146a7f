"""Scripts of the login pod by kubectl: exit codes, errors, and the user of validations."""

from pathlib import Path

import pytest

from infra.errors import UserError
from infra.jobs.login_pod import PLACE, PROGRAM, SHELL, LoginPod
from infra.jobs.service import LostError
from infra.jobs.slurm import HEAD, OWN


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubectl that records its words and its kubeconfig, and then does what the file `does` says."""
    program = tmp_path / "kubectl"
    folder = tmp_path
    program.write_text(
        f'#!/bin/sh\necho "$@" > {folder}/words\ncat "${{1#--kubeconfig=}}" > {folder}/config\n'
        f"cat > {folder}/input\n. {folder}/does\n"
    )
    program.chmod(0o700)
    monkeypatch.setenv(PROGRAM, str(program))
    return tmp_path


def ran(kubectl: Path, does: str) -> str:
    (kubectl / "does").write_text(does)
    return LoginPod("kubeconfig of the stack").run("sinfo\n", what="look")


def test_a_script_runs_in_the_login_pod_after_its_user_is_made(kubectl: Path) -> None:
    assert ran(kubectl, "echo done") == "done\n"
    assert (kubectl / "words").read_text().split()[1:] == [*PLACE, *SHELL]
    assert (kubectl / "config").read_text() == "kubeconfig of the stack"
    assert (kubectl / "input").read_text().endswith("\nsinfo\n")
    assert "useradd" in (kubectl / "input").read_text()


def test_what_root_keeps_about_jobs_is_with_their_results_and_not_on_the_disk_of_the_pod(
    kubectl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINSTACK_USER", "root")
    (kubectl / "does").write_text(f"bash {kubectl}/input")
    script = f'{HEAD}printf "%s\\n" "{OWN}" "$work"\n'
    state, work = LoginPod("").run(script, what="look").split()
    assert Path(work).is_relative_to("/home") and Path(state).is_relative_to("/home")
    # No folder of the user of jobs, who could name another place.
    assert not Path(state).is_relative_to(Path(work).parent)


def test_a_pod_that_is_not_ready_is_asked_again(kubectl: Path) -> None:
    with pytest.raises(LostError, match="no connection"):
        ran(kubectl, "echo 'Error from server (NotFound): deployments.apps \"login\" not found' >&2; exit 1")


def test_a_script_that_fails_is_an_error_with_its_output(kubectl: Path) -> None:
    with pytest.raises(UserError) as caught:
        ran(kubectl, "echo '2 of 4 nodes of p4d have registered'; exit 4")
    (problem,) = caught.value.problems
    assert problem.code == "login-script"
    assert "2 of 4 nodes" in problem.rule


def test_kubectl_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PROGRAM, raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError) as caught:
        LoginPod("").run("sinfo", what="look")
    assert caught.value.problems[0].code == "kubectl-missing"
