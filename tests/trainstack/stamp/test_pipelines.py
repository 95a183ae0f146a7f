"""Pipelines of a new client: checkers of GitHub and GitLab accept them, and their rights are few."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from infra.places import PACKAGES
from tests.trainstack.stamp import actionlint
from tests.trainstack.stamp.test_client import choices
from trainstack.stamp import client, environment
from trainstack.stamp.folder import write

GITLAB = json.loads((Path(__file__).parent / "gitlab" / "ci.schema.json").read_text())
PAIRS = [(profile, cloud) for cloud in ("aws", "gcp") for profile in ("small", "medium")]
ACTION, DEPLOY, NIGHTLY, CI = (
    ".github/actions/trainstack/action.yml",
    ".github/workflows/trainstack.yml",
    ".github/workflows/nightly.yml",
    ".gitlab-ci.yml",
)
_TRAINSTACK = """\
#!/bin/sh
exec {python} -P -c 'import sys
sys.path.insert(0, sys.argv.pop(1))
from trainstack.cli import main
main()' {packages} "$@" --rehearse
"""
_GH = """\
#!/bin/sh
printf '%s\\n' "$*" >> calls.txt
case "$*" in *--paginate*) cat known.txt ;; esac
"""


@cache
def texts(profile: str, cloud: str) -> Mapping[str, str]:
    return client.render(choices(profile, cloud)).texts


def parsed(text: str) -> Any:
    return YAML(typ="safe").load(text)


def jobs(*pair: str) -> Iterator[tuple[str, Any]]:
    for file in (DEPLOY, NIGHTLY):
        yield from parsed(texts(*pair)[file])["jobs"].items()


def extended(pipeline: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A job with the keys of those that it extends: the schema accepts anything in hidden jobs."""
    job = {**pipeline[name]}
    if "extends" not in job:
        return job
    above = extended(pipeline, job.pop("extends"))
    variables = {**above.get("variables", {}), **job.get("variables", {})}
    return {**above, **job, "variables": variables}


def validate(text: str) -> None:
    """Validate a pipeline of GitLab by its published schema, each job with what it extends."""
    pipeline = parsed(text)
    visible = {name: one for name, one in pipeline.items() if not name.startswith(".")}
    merged = {name: extended(pipeline, name) for name, one in visible.items() if "extends" in one}
    assert len(merged) == 6 and all("script" in one for one in merged.values())
    jsonschema.Draft7Validator(GITLAB).validate({**visible, **merged})


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_the_checkers_of_both_services_accept_them(pair: tuple[str, str], tmp_path: Path) -> None:
    write(texts(*pair), tmp_path / "acme")
    validate(texts(*pair)[CI])
    assert actionlint.faults(tmp_path / "acme") == ""


def test_the_checkers_find_faults(tmp_path: Path) -> None:
    good = texts("small", "aws")
    with pytest.raises(jsonschema.ValidationError):
        validate(good[CI].replace("when: manual", "when: sometimes"))
    bad = good[DEPLOY].replace("needs: preview-dev", "needs: preview-test")
    write({**good, DEPLOY: bad}, tmp_path / "acme")
    assert "preview-test" in actionlint.faults(tmp_path / "acme")


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_jobs_have_few_rights_no_secret_and_pinned_actions(pair: tuple[str, str]) -> None:
    made = texts(*pair)
    for file in (ACTION, DEPLOY, NIGHTLY, CI):
        assert "secrets." not in made[file]
        uses = re.findall(r"uses: (\S+)(.*)", made[file])
        for action, comment in uses:
            assert action.startswith("./") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
            assert action.startswith("./") or re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
    for file in (DEPLOY, NIGHTLY):
        assert parsed(made[file])["permissions"] == {}
    allowed = {"contents": "read", "id-token": "write"}
    for name, job in jobs(*pair):
        previews = name.startswith("preview")
        assert job["permissions"] == allowed | ({"pull-requests": "write"} if previews else {})
        assert job["timeout-minutes"] <= 240
        checkout = job["steps"][0]
        assert checkout["uses"].startswith("actions/checkout@")
        assert checkout["with"]["persist-credentials"] is False


def test_stacks_are_deployed_one_by_one_after_approval_of_their_environment() -> None:
    found = dict(jobs("medium", "aws"))
    for one in ("dev", "prod"):
        up = found[f"up-{one}"]
        assert (up["environment"], up["if"]) == (f"acme-{one}", "github.event_name == 'push'")
        assert up["concurrency"] == {"group": f"acme-{one}", "cancel-in-progress": False}
        assert up["needs"] == f"preview-{one}"
        assert "head.repo.full_name == github.repository" in found[f"preview-{one}"]["if"]
        assert "environment" not in found[f"preview-{one}"]
    assert found["preview-prod"]["needs"] == "up-dev"
    made = parsed(texts("medium", "aws")[CI])
    for one in ("dev", "prod"):
        up = made[f"up-{one}"]
        assert (up["environment"]["name"], up["resource_group"]) == (f"acme-{one}", f"acme-{one}")
        assert up["needs"] == [f"preview-{one}", *(["up-dev"] if one == "prod" else [])]
    assert made[".up"]["rules"][0]["when"] == "manual"
    forks = "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID"
    assert forks in made[".preview"]["rules"][0]["if"]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_scripts_are_valid_shell(pair: tuple[str, str]) -> None:
    scripts = [step["run"] for _, job in jobs(*pair) for step in job["steps"] if "run" in step]
    scripts += [step["run"] for step in parsed(texts(*pair)[ACTION])["runs"]["steps"] if "run" in step]
    for job in parsed(texts(*pair)[CI]).values():
        if isinstance(job, dict):
            scripts += ["\n".join(job[key]) for key in ("before_script", "script") if key in job]
    assert len(scripts) > 10
    for script in scripts:
        done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + script


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pipelines_of_clusters_reach_them_and_have_what_logs_in(pair: tuple[str, str]) -> None:
    made, cluster = texts(*pair), pair[0] != "small"
    assert {job["runs-on"] for _, job in jobs(*pair)} == {"${{ vars.TRAINSTACK_RUNNER || 'ubuntu-24.04' }}"}
    assert parsed(made[CI])["default"]["tags"] == ["$TRAINSTACK_RUNNER"]
    assert ("TRAINSTACK_RUNNER" in made["README.md"]) is cluster
    gitlab = "\n".join(parsed(made[CI])[".trainstack"]["before_script"])
    login = {"aws": r"awscli\.lock", "gcp": r"gke-gcloud-auth-plugin[=\n]"}[pair[1]]
    for script in (gitlab, made[ACTION]):
        assert bool(re.search(r"[0-9a-f]{64}  \S+/bin/kubectl", script)) is cluster
        assert bool(re.search(login, script)) is cluster


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_the_reader_is_led_to_what_the_first_deployment_needs(pair: tuple[str, str]) -> None:
    """The setup comes before the deployer's own commands, as do the limits that it asks of roles on AWS."""
    first = texts(*pair)["README.md"].partition("## First deployment")[2].partition("\n## ")[0]
    commands = re.findall(r"`(?:trainstack|pulumi) ([a-z]+)", first)
    assert commands == ["bootstrap", "login", "stack", "preflight", "up"]
    assert ("`on.permissions_boundary`" in first.partition("`pulumi login")[0]) is (pair[1] == "aws")


class Runner:
    """A machine of GitHub that runs the steps of a job, with a rehearsed cloud, and a `gh` that records."""

    def __init__(self, folder: Path) -> None:
        self.folder, programs = folder / "acme", folder / "bin"
        write(client.render(choices("small")).stamped, self.folder)
        environment.link(self.folder)
        programs.mkdir()
        trainstack = _TRAINSTACK.format(python=sys.executable, packages=PACKAGES)
        for name, text in (("trainstack", trainstack), ("gh", _GH)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.summary, self.output = folder / "summary.md", folder / "output.txt"
        self.variables = {
            **os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_OUTPUT": str(self.output),
            "COMMENTS": "repos/o/r/issues/7/comments", "ONE": "repos/o/r/issues/comments",
        }  # fmt: skip

    def run(self, step: Mapping[str, Any]) -> int:
        """The exit code of a step, with the shell that GitHub uses."""
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
        return subprocess.run(command, cwd=self.folder, env=self.variables, check=False).returncode

    def calls(self, known: str) -> list[str]:
        """The calls of `gh` by a step, when it finds comments."""
        (self.folder / "known.txt").write_text(known)
        (self.folder / "calls.txt").write_text("")
        comment = dict(jobs("small", "aws"))["preview-dev"]["steps"][-1]
        assert self.run(comment) == 0
        return (self.folder / "calls.txt").read_text().splitlines()


@pytest.mark.more
def test_a_preview_becomes_one_comment_with_changes_price_and_verdict(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    step = next(
        one for one in dict(jobs("small", "aws"))["preview-dev"]["steps"] if one.get("id") == "preview"
    )
    assert runner.run(step) == 0
    comment = (runner.folder / "comment.md").read_text()
    assert runner.summary.read_text() == comment
    (plan,) = re.findall(r"^<!-- trainstack acme-dev plan=([0-9a-f]{64}) -->$", comment, re.MULTILINE)
    assert runner.output.read_text() == f"plan={plan}\n"
    assert "161 created" in comment and "**0 violations**" in comment and "Price per month: $" in comment
    first, second = runner.calls(known="")
    assert "--paginate" in first and "--method POST repos/o/r/issues/7/comments" in second
    assert "--method PATCH repos/o/r/issues/comments/42 " in runner.calls(known="42\n43\n")[1]
    (runner.folder / "policies" / "audit.yaml").write_text(
        "environments: {acme-dev: {settings: {required_tags: {colour: .+}}}, acme-prod: {}}\n"
    )
    assert runner.run(step) == 3
    assert "a policy is violated" in (runner.folder / "comment.md").read_text()
