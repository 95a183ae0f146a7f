"""Commands of Slurm that cannot be run, here or by ssh."""

from pathlib import Path

import pytest

from infra.errors import UserError
from tests.trainstack.cli.command import run, run_json

# It prints what a host would print: its arguments are the options, the host and one line for a shell.
_SSH = """#!/bin/sh
[ "$1 $2 $5" = "-o BatchMode=yes --" ] || exit 9
case $6 in
  away) echo "no route to host" >&2; exit 255 ;;
  login) PATH=$(dirname "$0")/there:$PATH sh -c "$7" ;;
esac
"""
_ROWS = {
    "squeue": "7|research|research-a100|a100|R|None|1796000000|1796000100|1796003700|9|1:00:00|"
    "cpu=8,billing=100,gres/gpu=8|1|a|b",
    "sinfo": "a100-1|a100|mixed|gpu:a100:8|gpu:a100:8(IDX:0-7)",
    "sacctmgr": "research-a100|gres/gpu=8",
    "sshare": "research||billing=6000000|billing=0|billing=6000",
}


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    there = tmp_path / "there"
    there.mkdir()
    for name, text in {"ssh": _SSH, **{f"there/{key}": _prints(row) for key, row in _ROWS.items()}}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return there


def _prints(row: str) -> str:
    """A program that ends its row as the last column of `--Format` says, if there is one."""
    end = r"""for word; do case $word in --Format=*) end=${word##*:256};; esac; done"""
    return f"#!/bin/sh\n[ $TZ = UTC ] || exit 1\n{end}\nprintf '%s%s\\n' '{row}' \"$end\"\n"


def _refused(*arguments: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        run("slurm", *arguments, "-s", "dev-aws")
    return [code for code, _ in caught.value.codes]


def test_the_queue_of_a_login_node_is_read_by_ssh(hosts: Path) -> None:
    code, found = run_json("slurm", "queue", "-s", "dev-aws", "--ssh", "login")
    assert code == 0
    (job,) = found["running"]
    assert (job["job"], job["gpus"], job["since"]) == ("7 a|b", 8, "2026-11-30T00:55:00Z")


@pytest.mark.parametrize(
    ("state", "reason", "kind", "fix"),
    [
        ("RH", "launch failure limit exceeded requeued held", "requeue limit", "submit it again"),
        ("SE", "job requeued in special exit state", "requeue limit", "scontrol release 7"),
        ("PD", "Nodes required for job are DOWN, DRAINED or reserved for jobs", "nodes away", "sinfo"),
        ("PD", "ReqNodeNotAvail, Reserved for maintenance", "pool closed", "JobId=7 TimeLimit"),
        ("PD", "JobHeldUser", "held", "scontrol release 7"),
        ("CF", "Prolog", "nodes booting", ""),
    ],
)
def test_reasons_that_only_some_systems_give(
    hosts: Path, state: str, reason: str, kind: str, fix: str
) -> None:
    row = (
        f"7_[2-9%2]|research|research-a100|a100|{state}|{reason}|1796000000|N/A|N/A|0|1:00:00|gres/gpu=8|1|a"
    )
    (hosts / "squeue").write_text(_prints(row))
    _, found = run_json("slurm", "queue", "-s", "dev-aws", "--ssh", "login")
    (job,) = found["waiting"]
    assert not found["running"]
    assert job["reason"]["kind"] == kind and fix in job["reason"]["fix"]


def test_gpus_without_a_type_are_in_use(hosts: Path) -> None:
    (hosts / "sinfo").write_text(_prints("a100-1|a100|mixed|gpu:8|gpu:(null):6(IDX:0-5)"))
    _, found = run_json("slurm", "queue", "-s", "dev-aws", "--ssh", "login")
    assert [(one["gpus"], one["free_on_nodes"]) for one in found["pools"]] == [(8, 2)]


def test_jobs_that_others_do_not_see_are_a_note(hosts: Path) -> None:
    (hosts / "scontrol").write_text("#!/bin/sh\necho 'PrivateData             = cloud,jobs'\n")
    (hosts / "scontrol").chmod(0o755)
    _, text = run("slurm", "queue", "-s", "dev-aws", "--ssh", "login")
    assert "PrivateData" in text


def test_quotas_that_a_member_may_not_read_are_a_note(hosts: Path) -> None:
    (hosts / "sshare").write_text("#!/bin/sh\necho 'access denied' >&2; exit 1\n")
    code, text = run("slurm", "queue", "-s", "dev-aws", "--ssh", "login")
    assert code == 0 and "access denied" in text


@pytest.mark.usefixtures("hosts")
def test_what_keeps_the_commands_from_running_is_named() -> None:
    assert _refused("queue") == ["slurm-missing"]
    assert _refused("ledger") == ["slurm-missing"]
    assert _refused("queue", "--ssh", "away") == ["ssh-failed"]
    assert _refused("queue", "--ssh", "login", "--rehearse") == ["option-conflict"]


def test_a_controller_that_does_not_answer_is_named(hosts: Path) -> None:
    (hosts / "squeue").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n")
    assert _refused("queue", "--ssh", "login") == ["slurm-failed"]
