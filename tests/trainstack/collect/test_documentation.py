"""The rights of docs/how-to/live.md: everything that is asked, in words that each cloud has."""

import re

from moto.iam.aws_managed_policies import aws_managed_policies_data

from policies.sources.live.tables import tables
from tests.trainstack.collect.project import BILLING, ID, Project, denied
from trainstack.collect.documentation import FILE, document, rights
from trainstack.collect.gcp import rights as google_rights
from trainstack.collect.gcp.project import collect


def test_the_document_is_written_from_what_is_asked() -> None:
    assert FILE.read_text() == document(), "python -m trainstack.collect.documentation"


def test_rights_only_read() -> None:
    assert all(re.fullmatch(r"[a-z0-9-]+:(Describe|Get|List|View)\w+", right) for right in rights())


def test_rights_are_words_that_policies_of_aws_have() -> None:
    """An action that is not called as its operation is one that some policy of AWS names in full."""
    named = set(re.findall(r'"([a-z0-9-]+:[A-Za-z]+)"', aws_managed_policies_data))
    unlike = {question.right for question in tables("aws").queries.values() if question.right}
    assert unlike
    assert unlike - named == set()


def test_services_are_those_that_policies_of_aws_name() -> None:
    prefixes = {right.partition(":")[0] for right in rights()}
    assert prefixes <= set(re.findall(r'"([a-z0-9-]+):[A-Za-z*]+"', aws_managed_policies_data))


def test_rights_of_google_only_read_and_are_of_services_that_are_asked() -> None:
    granted = google_rights.rights()
    asked = {one.right for one in tables("gcp").queries.values()}
    assert {right for found in granted.values() for right in found} == asked
    assert all(re.fullmatch(r"[a-z]+\.[a-zA-Z]+\.(get|list)[A-Za-z]*", right) for right in asked)
    assert granted["above"] == [
        "logging.sinks.list",
        "resourcemanager.folders.getIamPolicy",
        "resourcemanager.organizations.getIamPolicy",
    ]


def test_a_project_can_be_read_with_the_permissions_of_its_role() -> None:
    """Without the roles above the project, its ancestors and budgets fail; the rest is reported."""
    project = Project()
    project.above = [("folder", "12")]
    names = {one.name: one for one in tables("gcp").queries.values()}
    refused = {
        "v3/folders/12:getIamPolicy": "cloudresourcemanager.folders.getIamPolicy",
        "logging/v2/folders/12/sinks": "logging.folders.sinks.list",
        f"billingbudgets/v1/{BILLING}/budgets": "billingbudgets.billingAccounts.budgets.list",
    }
    project.said |= dict.fromkeys(refused, denied)
    answers = collect(ID, project.session()).answers
    open_ = {name for name, answered in answers.items() if answered.refusals}
    assert open_ == set(refused.values())
    granted = set(google_rights.rights()["project"])
    assert all((names[name].right in granted) is (name not in open_) for name in names if answers[name].items)
