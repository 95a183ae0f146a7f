"""Identities that may deploy as a client's deployer: an agency's, or one pipeline of one repository."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from infra.errors import Problem, UserError, raise_all

GITHUB: Final = "https://token.actions.githubusercontent.com"
GITLAB: Final = "https://gitlab.com"
GITLAB_AUDIENCE: Final = GITLAB
"""The audience of tokens for AWS (GitLab documentation, "Configure OpenID Connect in AWS")."""
MAIN = "main"
"""The branch that deploys by default."""
RESERVED: Final = ("deployer-", "trainstack-")
"""Beginnings of names of what deployers on AWS may not change."""
_OWNER, _NAME, _ID = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}", r"[A-Za-z0-9._-]{1,100}", r"@[1-9][0-9]{0,19}"
_PATHS = {
    "--github": re.compile(f"{_OWNER}/{_NAME}|{_OWNER}{_ID}/{_NAME}{_ID}"),
    "--gitlab": re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*){1,20}"),
}
_EXAMPLES = {"--github": "acme/stacks, or acme@123456/stacks@456789", "--gitlab": "acme/stacks"}
_ROLE = re.compile(r"arn:aws:iam::\d{12}:role/[\w+=,.@/-]{1,512}", re.ASCII)
# Source: AWS STS API reference, AssumeRole, ExternalId.
_EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{8,1224}", re.ASCII)
_MEMBER = re.compile(r"(user|group|serviceAccount):[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[a-z]+")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")


def environment(stack: str) -> str:
    """The environment of GitHub or GitLab that protects the deployments of a stack."""
    return stack


def variable(name: str, stack: str) -> str:
    """The variable of the repository with the value of one stack, whose account or project may be its own."""
    return f"{name}_{stack.upper().replace('-', '_')}"


@dataclass(frozen=True)
class AgencyRole:
    """A role of the agency's AWS account, which assumes the deployer with an external id."""

    arn: str
    external_id: str


@dataclass(frozen=True)
class AgencyMember:
    """A Google identity of the agency, which acts as the deployer's service account."""

    member: str


@dataclass(frozen=True)
class Pipeline:
    """A pipeline that logs in by OpenID Connect: GitHub by environment, GitLab by branch."""

    issuer: str
    repository: str
    """Its path as subjects have it; of GitHub `OWNER@ID/REPOSITORY@ID` where these are immutable.

    Repositories that were created, renamed or transferred since 2026-07-15, or that chose it, have the ids.
    Sources: GitHub documentation, "OpenID Connect reference", immutable subject claims;
    aws-actions/configure-aws-credentials#1888, #1938.
    """
    branch: str = "main"

    @property
    def path(self) -> str:
        """The path of the repository, without ids."""
        return re.sub(r"@\d+", "", self.repository) if self.issuer == GITHUB else self.repository

    @property
    def audience(self) -> str:
        """The audience of tokens for AWS, which the provider of an account has already, if it has one."""
        return "sts.amazonaws.com" if self.issuer == GITHUB else GITLAB_AUDIENCE

    def subject(self, stack: str) -> str:
        """The subject of tokens that deploy a stack: one environment or one branch; never a pattern.

        Sources: GitHub documentation, "OpenID Connect reference"; GitLab documentation, "OpenID Connect in
        AWS" (`project_path:{group}/{project}:ref_type:{type}:ref:{branch_name}`).
        """
        return (
            f"repo:{self.repository}:environment:{environment(stack)}" if self.by_environment else self.main
        )

    @property
    def by_environment(self) -> bool:
        """Return whether subjects name the environment, so that its approval limits who deploys."""
        return self.issuer == GITHUB

    @property
    def main(self) -> str:
        """The subject of the branch's jobs without an environment: previews after a merge, nightly checks."""
        if self.issuer == GITHUB:
            return f"repo:{self.repository}:ref:refs/heads/{self.branch}"
        return f"project_path:{self.repository}:ref_type:branch:ref:{self.branch}"

    @property
    def previews(self) -> tuple[str, ...]:
        """Subjects of previews; GitLab's name the branch of the merge request, so that any branch fits."""
        if self.issuer == GITHUB:
            return (f"repo:{self.repository}:pull_request", self.main)
        return (f"project_path:{self.repository}:ref_type:branch:ref:*",)


Trust = AgencyRole | AgencyMember | Pipeline


def chosen(
    *, agency_role: str, external_id: str, agency_member: str, github: str, gitlab: str, branch: str
) -> Trust:
    """The trust that options name. Raises UserError for none, for several, and for patterns."""
    given = {
        "--agency-role": agency_role, "--agency-member": agency_member, "--github": github, "--gitlab": gitlab
    }  # fmt: skip
    named = [option for option, value in given.items() if value]
    if len(named) != 1:
        rule = "needs exactly one identity that may deploy"
        fix = f"Give one of {', '.join(given)}."
        path = ", ".join(named) or "trust"
        raise UserError([Problem(path, None, rule, fix, code="bootstrap-trust-not-chosen")])
    if branch != MAIN and not gitlab:
        rule, fix = (
            "is an option of --gitlab",
            "Leave it out: in GitHub, environments say which branches deploy.",
        )
        raise UserError([Problem("--branch", branch, rule, fix, code="bootstrap-trust-invalid")])
    if external_id and not agency_role:
        rule, fix = "is an option of --agency-role", "Leave it out: it has no effect."
        raise UserError([Problem("--external-id", external_id, rule, fix, code="bootstrap-trust-invalid")])
    if agency_role:
        rule = "must be an id of 8 characters or more, which only one client has"
        raise_all(
            [
                *_wrong("--agency-role", agency_role, _ROLE, "arn:aws:iam::111122223333:role/deployment"),
                *_wrong("--external-id", external_id, _EXTERNAL_ID, "acme-4c1f9a2e", rule),
            ]
        )
        return AgencyRole(agency_role, external_id)
    if agency_member:
        raise_all(_wrong("--agency-member", agency_member, _MEMBER, "group:deployment@agency.com"))
        return AgencyMember(agency_member)
    (option,) = named
    rule = "must be a path with owner and repository, without wildcards"
    rule += ", with the ids of both or of none" if github else ""
    problems = [*_wrong(option, github or gitlab, _PATHS[option], _EXAMPLES[option], rule)]
    raise_all([*problems, *_wrong("--branch", branch, _BRANCH, MAIN)])
    return Pipeline(GITHUB, github) if github else Pipeline(GITLAB, gitlab, branch)


def prefix(path: str) -> str:
    """The command that prints how subjects of a repository of GitHub begin.

    Source: GitHub REST API, "Get the customization template for an OIDC subject claim for a repository".
    """
    return f"gh api repos/{path}/actions/oidc/customization/sub --jq .sub_claim_prefix"


def rules(path: str, stack: str) -> str:
    """The command that prints the types of the protection rules of a stack's environment, one a line.

    Source: GitHub REST API, "Get an environment".
    """
    return f"gh api repos/{path}/environments/{environment(stack)} --jq '.protection_rules[].type'"


def github_path(text: str) -> str:
    """The path in what this command prints; empty for a form that bootstrap does not print."""
    found = text.strip().removeprefix("repo:")
    return found if _PATHS["--github"].fullmatch(found) else ""


def _wrong(
    option: str,
    value: str,
    form: re.Pattern[str],
    example: str,
    rule: str = "must name one identity, without wildcards",
) -> Iterator[Problem]:
    if not form.fullmatch(value):
        yield Problem(option, value, rule, f"Such as: {example}.", code="bootstrap-trust-invalid")
