"""Issuers of tokens that many organizations share, and the claims by which a token names one of them.

Anybody can get a token of such an issuer, and choose the other claims: the names of branches, workflows and
environments, the audience, and an account whose name begins with that of another. So a condition limits the
identities only if it names a whole account, project or id.

Sources, read on 2026-11-29: GitHub Docs, "OpenID Connect reference"; GitLab Docs, "OpenID Connect (OIDC)
Authentication Using ID Tokens", and merge request 160562 of gitlab-org/gitlab (a subject begins with
project_path); Buildkite Docs, "Working with Buildkite agents" (organizations share the issuer); HashiCorp,
"Workload identity" of HCP Terraform. The same in bridgecrewio/checkov: CKV_AWS_358 and CKV_GCP_125 with
checkov/common/util/oidc_utils.py; fixtures accept `repo:myOrg/*` and refuse `repo:myOrg*`.
"""

import re
from dataclasses import dataclass, field

_END = "\0"
"""Stands for any text after a prefix; no pattern below matches it."""


@dataclass(frozen=True)
class Issuer:
    """Claims that name an organization: `whole` by their value, `parts` also by their beginning."""

    subject: str
    """Beginning of a subject that names an organization (a regular expression)."""
    whole: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    """Claims with `ORGANIZATION/REST`."""
    shared: bool = field(default=True)

    def names(self, claim: str, value: str, whole: bool) -> bool:
        """Return whether claims with this value, or beginning with it, are of one organization."""
        if not re.search(r"\w", value):
            return False
        text = value if whole else value + _END
        if not self.shared:
            return claim != "iss" and not (claim == "sub" and _KIND.match(value) and not _NAMED.match(text))
        if claim == "sub":
            return re.match(self.subject, text) is not None
        if claim in self.parts:
            return whole or re.match(rf"[^/{_END}]+/", text) is not None
        return whole and claim in self.whole


_GITHUB, _GITLAB = "token.actions.githubusercontent.com", "gitlab.com"
_NAME, _STOP = rf"[^:/*?{_END}]+", "(?::|$)"
_SHARED = {
    _GITHUB: Issuer(
        rf"(?:repo|repository|job_workflow_ref|workflow_ref):{_NAME}/"
        rf"|(?:repository_owner|(?:repository|repository_owner|enterprise|actor)_id|enterprise|actor)"
        rf":{_NAME}{_STOP}",
        frozenset(("repository_owner", "repository_owner_id", "repository_id", "enterprise", "enterprise_id"))
        | {"actor", "actor_id"},
        frozenset(("repository", "job_workflow_ref", "workflow_ref")),
    ),
    _GITLAB: Issuer(
        rf"(?:project_path|namespace_path):{_NAME}[/:]",
        frozenset(("namespace_id", "project_id", "user_id", "user_login", "user_email")),
        frozenset(("namespace_path", "project_path", "ci_config_ref_uri")),
    ),
    "app.terraform.io": Issuer(
        rf"organization:{_NAME}:",
        frozenset(f"terraform_{name}" for name in ("organization_id", "organization_name", "project_id"))
        | {"terraform_workspace_id"},
    ),
    "agent.buildkite.com": Issuer(
        rf"organization:{_NAME}:", frozenset(("organization_slug", "organization_id", "pipeline_id"))
    ),
}
# Servers of one's own (GitHub Enterprise Server, GitLab) write the same subjects: `repo:*` is everybody.
_KIND = re.compile(r"(?:repo|repository|repository_owner|job_workflow_ref|project_path|namespace_path):")
_NAMED = re.compile("|".join(_SHARED[host].subject for host in (_GITHUB, _GITLAB)))
# Of a cluster: a namespace, which only its administrators create.
_CLUSTER = Issuer(rf"system:serviceaccount:{_NAME}")
_OWN = Issuer("", shared=False)


def issuer_of(url: str) -> Issuer:
    """The issuer of a URL or of the ARN of its provider; one that is not shared if it is unknown."""
    name = url.partition(":oidc-provider/")[2] or url.partition("://")[2] or url
    host = name.strip("/").lower()
    if host.startswith(("oidc.eks.", "oidc-eks.")):
        return _CLUSTER
    return _SHARED.get(host, _OWN)


def subject_is_limited(issuer: Issuer, pattern: str) -> bool:
    """Return whether a condition on a subject, which may contain `*` and `?`, names an organization."""
    prefix, wildcards, _ = re.split(r"([*?]|$)", pattern, maxsplit=1)
    return issuer.names("sub", prefix, whole=not wildcards)
