"""`trainstack preflight` reports all results at once, and exits with 0 only when all checks pass."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from infra import stackspec
from infra.clouds.aws import login as aws_login
from infra.engine.golang import ROOT
from infra.errors import UserError
from infra.exit_codes import ExitCode
from infra.stackspec.aws.cloud import LoadBalancerSpec
from tests.stacks.stack_files import LOAD_BALANCER
from tests.trainstack.cli.command import checked
from tests.trainstack.preflight.aws.asking import ACCOUNT, ME, STACK, Cloud
from tests.trainstack.preflight.aws.test_quotas import use, values
from trainstack.cli.app import app
from trainstack.preflight.aws import CHECKS
from trainstack.preflight.aws.deployment import preflight_of
from trainstack.preflight.deployment import require_ready

RUN = CliRunner()


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """The account that the command asks."""
    cloud = Cloud()
    monkeypatch.setattr(aws_login, "clients", lambda: cloud)
    yield cloud
    assert cloud.is_exhausted()


def preflight(*more: str, only: tuple[str, ...]) -> Any:
    skipped = [word for name in CHECKS if name not in only for word in ("--skip", name)]
    done: Any = RUN.invoke(app, ["preflight", "-s", STACK, *skipped, *more, "--format", "json"])
    if not isinstance(done.exception, UserError):
        document = checked(done.stdout)
        assert document["exit_code"] == done.exit_code
        done.answers = {row["check"]: row for row in document["answers"]}
    return done


def me(cloud: Cloud, number: str = ACCOUNT) -> Cloud:
    return cloud.answers("sts", "get_caller_identity", {"Account": number, "Arn": ME, "UserId": "x"})


def test_ready(cloud: Cloud) -> None:
    me(cloud).zones()
    done = preflight(only=("zones",))
    assert done.exit_code == 0, done.output
    assert {name: row["state"] for name, row in done.answers.items()} == {
        "identity": "ready",
        "zones": "ready",
    }


def test_something_is_missing(cloud: Cloud) -> None:
    use(values(me(cloud), short=("ec2_on_demand_p",)))
    cloud.refuses("eks", "describe_cluster", "AccessDeniedException", "no")
    done = preflight(only=("quotas", "way-in"))
    assert done.exit_code == 1
    short = done.answers["quota ec2_on_demand_p"]
    assert short["state"] == "short" and "--desired-value 384" in short["fix"]
    assert done.answers["way-in"]["state"] == "unknown"


def test_a_check_that_could_not_be_made_is_no_pass(cloud: Cloud) -> None:
    me(cloud).refuses("eks", "describe_cluster_versions", "AccessDeniedException", "no")
    assert preflight(only=("kubernetes-version",)).exit_code == 2


def test_credentials_that_expired(cloud: Cloud) -> None:
    cloud.refuses("sts", "get_caller_identity", "ExpiredToken", "The security token has expired")
    done = preflight(only=tuple(CHECKS))
    assert done.exit_code == 2
    assert (
        done.answers["identity"]["state"] == "unknown" and done.answers["identity"]["fix"] == aws_login.LOG_IN
    )


def test_credentials_that_do_not_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    done = preflight(only=tuple(CHECKS))
    assert done.exit_code == 2
    assert "Unable to locate credentials" in done.output


def test_what_is_left_can_be_rehearsed(cloud: Cloud, tmp_path: Path) -> None:
    use(values(use(values(me(cloud), short=("ec2_on_demand_p",)))))
    file = tmp_path / "account.yaml"
    assert preflight("--save", str(file), only=("quotas",)).exit_code == 1
    assert YAML(typ="safe").load(file.read_text())["quotas"]["ec2_on_demand_p"] == 0
    done = RUN.invoke(app, ["up", "-s", STACK, "--rehearse", "--yes", "--faults", str(file)])
    assert isinstance(done.exception, UserError)
    (problem,) = done.exception.problems
    assert problem.path == "quota ec2_on_demand_p"
    assert problem.rule.startswith(
        "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 0 allows"
    )


def test_results_that_cannot_be_saved_are_printed(cloud: Cloud, tmp_path: Path) -> None:
    use(values(use(values(me(cloud), short=("ec2_on_demand_p",)))))
    done = preflight("--save", str(tmp_path / "no" / "account.yaml"), only=("quotas",))
    assert done.exit_code == ExitCode.USAGE and "[preflight-not-saved]" in done.stderr
    assert done.answers["quota ec2_on_demand_p"]["state"] == "short"
    assert json.loads(done.stdout)["saved"] is None


def test_a_fix_is_a_line_that_can_be_pasted(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    use(values(me(cloud), short=("ec2_on_demand_p",)))
    skipped = [word for name in CHECKS if name != "quotas" for word in ("--skip", name)]
    lines = RUN.invoke(app, ["preflight", "-s", STACK, *skipped]).stdout.splitlines()
    (fix,) = [line for line in lines if line.startswith("aws service-quotas")]
    assert fix.endswith("--desired-value 384") or "--desired-value 384 " in fix


def test_a_check_that_does_not_exist() -> None:
    done: Any = RUN.invoke(app, ["preflight", "-s", STACK, "--skip", "quota"])
    assert isinstance(done.exception, UserError)
    assert done.exception.codes == (("unknown-check", "--skip"),)


@pytest.mark.parametrize("number", [ACCOUNT, "210987654321"])
def test_up_begins_nothing_where_it_could_not_finish(cloud: Cloud, number: str) -> None:
    me(cloud, number)
    if number == ACCOUNT:
        old = {"clusterVersion": "1.36", "versionStatus": "EXTENDED_SUPPORT"}
        cloud.answers("eks", "describe_cluster_versions", {"clusterVersions": [old]})
        for _ in range(3):
            cloud.refuses("iam", "get_role", "NoSuchEntity")
        name = f"/aws/eks/{STACK}/cluster"
        left = {"logGroupName": name, "arn": f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:{name}:*"}
        cloud.answers("logs", "describe_log_groups", {"logGroups": [left]})
        cloud.answers("logs", "list_tags_for_resource", {"tags": {}})
        cloud.answers("eks", "describe_cluster", {"cluster": {"endpoint": "https://127.0.0.1.invalid"}})
    assert refused() - {"aws-cli"} == (
        {"kubernetes-version", "principals", "leftovers", "way-in"} if number == ACCOUNT else {"identity"}
    )


def test_up_goes_on_where_it_may_not_ask(cloud: Cloud) -> None:
    me(cloud).refuses("iam", "get_role", "AccessDenied", "no")
    cloud.refuses("logs", "describe_log_groups", "AccessDeniedException", "no")
    for operation in ("describe_cluster_versions", "describe_cluster"):
        cloud.refuses("eks", operation, "AccessDeniedException", "no")
    assert refused() <= {"aws-cli"}


def test_up_does_not_begin_without_what_a_load_balancer_is_given(cloud: Cloud) -> None:
    me(cloud).refuses("iam", "get_role", "AccessDenied", "no")
    cloud.refuses("logs", "describe_log_groups", "AccessDeniedException", "no")
    for operation in ("describe_cluster_versions", "describe_cluster"):
        cloud.refuses("eks", operation, "AccessDeniedException", "no")
    cloud.refuses("acm", "describe_certificate", "ResourceNotFoundException")
    cloud.refuses("secretsmanager", "describe_secret", "ResourceNotFoundException")
    assert refused(LOAD_BALANCER) - {"aws-cli"} == {"certificate", "client-secret"}


def refused(load_balancer: Any = None) -> set[str]:
    """The checks for which `up` does not begin."""
    spec = stackspec.load_file(STACK).spec
    if load_balancer:
        wanted = LoadBalancerSpec.model_validate(load_balancer)
        spec = spec.model_copy(update={"on": spec.on.model_copy(update={"load_balancer": wanted})})
    try:
        require_ready(preflight_of(spec))
    except UserError as error:
        return {problem.path for problem in error.problems}
    return set()


def test_the_documented_policy_allows_every_request_and_nothing_else() -> None:
    text = (ROOT / "docs" / "reference" / "preflight.md").read_text()
    policy = json.loads(text.partition("```json")[2].partition("```")[0])
    source = "".join(path.read_text() for path in (ROOT / "trainstack" / "preflight" / "aws").rglob("*.py"))
    actions = policy["Statement"][0]["Action"]
    assert len({*actions}) == len(actions)
    for action in actions:
        operation = action.partition(":")[2]
        words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=AWS)(?=D)|(?<=DB)(?=[A-Z])", "_", operation).lower()
        assert words in source, action
    asked = set(re.findall(r"\b((?:describe|list|get|simulate)_[a-z_]+)\b", source))
    named = {action.partition(":")[2].lower() for action in policy["Statement"][0]["Action"]}
    assert {name for name in asked - {"get_paginator"} if name.replace("_", "") not in named} == set()
