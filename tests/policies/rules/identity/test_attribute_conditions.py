"""Conditions of workload identity providers: those that strangers satisfy, and close ones that limit."""

import pytest

from tests.policies.rules.judging import made, results

GITHUB, OWN = "https://token.actions.githubusercontent.com", "https://login.example.com/"
MAPPING = {
    "google.subject": "assertion.sub",
    "attribute.repository": "assertion.repository",
    "attribute.owner": "assertion.repository_owner",
    "attribute.fixed": "'acme'",
}


def judged(condition: str, issuer: str) -> list[str]:
    kind = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
    oidc = {"issuerUri": issuer}
    return results(
        "MLS-IAM-04", made(kind, oidc=oidc, attributeMapping=MAPPING, attributeCondition=condition)
    )


ADMIT_ANYBODY = """
true
1==1
1 < 2 && 'a' == 'a'
!false
!(assertion.repository_owner == '')
attribute.repository != ""
has(assertion.repository)
size(assertion.repository) > 0
assertion.sub == assertion.sub
google.subject == assertion.sub
attribute.fixed == 'acme'
assertion.repository_owner == 'acme' || true
true || assertion.repository_owner == 'acme'
assertion.repository_owner == 'acme' || assertion.ref == 'refs/heads/main'
assertion.repository_owner == 'acme' || assertion.repository_owner != 'acme'
assertion.repository_owner == 'acme' ? true : true
assertion.repository_owner in ['acme', assertion.repository_owner]
!(assertion.repository_owner == 'acme')
assertion.repository_owner != 'mallory' && assertion.ref == 'refs/heads/main'
assertion.ref == 'refs/heads/main'
assertion.environment == 'production'
assertion.aud == 'https://github.com/acme'
assertion.iss == 'https://token.actions.githubusercontent.com'
assertion.sub == 'environment:production'
assertion.sub.startsWith('repo:')
assertion.repository.startsWith('')
assertion.repository.startsWith('acme')
assertion.repository_owner.startsWith('acme')
assertion.repository.endsWith('/training')
assertion.repository.contains('acme/')
assertion.repository.matches('.*')
assertion.repository.matches('acme/.*')
assertion.repository.matches('^acme.*')
""".strip().splitlines()
LIMIT = """
assertion.repository_owner == 'acme'
'acme' == assertion.repository_owner
assertion['repository_owner'] == "acme"
attribute.owner == 'acme' && true
attribute.owner.lowerAscii() == 'acme'
assertion.repository_owner_id == '123' && assertion.ref == 'refs/heads/main'
(assertion.repository_owner == 'acme') == true
!(assertion.repository_owner != 'acme')
assertion.repository_owner == 'acme' ? true : false
assertion.repository in ['acme/a', 'acme/b']
'acme' in [assertion.repository_owner]
assertion.repository_owner == 'acme' // 'https://github.com/acme' || true
assertion.sub == 'repo:acme/training:ref:refs/heads/main'
assertion.sub.startsWith('repo:acme/')
google.subject.startsWith('repo:acme/training:')
attribute.repository.startsWith('acme/')
assertion.repository.split('/')[0] == 'acme'
assertion.repository.matches('^acme/.*$')
['acme/a', 'acme/b'].exists(one, assertion.repository == one)
assertion.job_workflow_ref.startsWith('acme/workflows/')
""".strip().splitlines()
OF_AN_OWN_ISSUER = """
assertion.sub == 'trainer'
assertion.hd == 'example.com'
assertion.email.endsWith('@example.com')
'admins' in google.groups
assertion.groups.exists(group, group == 'admins')
assertion.sub.startsWith('project_path:acme/')
assertion.project_path.startsWith('acme/')
""".strip().splitlines()


@pytest.mark.parametrize("condition", ADMIT_ANYBODY)
def test_a_condition_that_strangers_satisfy_limits_nothing(condition: str) -> None:
    assert judged(condition, GITHUB) == ["fail"]


@pytest.mark.parametrize("condition", LIMIT)
def test_a_condition_on_an_organization_limits(condition: str) -> None:
    assert judged(condition, GITHUB) == ["pass"]


@pytest.mark.parametrize("condition", OF_AN_OWN_ISSUER)
def test_any_claim_of_an_issuer_of_ones_own_limits(condition: str) -> None:
    assert judged(condition, OWN) == ["pass"]


@pytest.mark.parametrize(
    "condition",
    [
        "true",
        "assertion.sub != ''",
        "assertion.sub.matches('.+')",
        "assertion.sub.startsWith('project_path:')",
    ],
)
def test_presence_limits_no_issuer(condition: str) -> None:
    assert judged(condition, OWN) == ["fail"]


@pytest.mark.parametrize("condition", ["assertion.repository.extract('{a}/') == 'acme'", "a ==", "((("])
def test_what_is_not_understood_is_undetermined(condition: str) -> None:
    assert judged(condition, GITHUB) == ["undetermined"]
