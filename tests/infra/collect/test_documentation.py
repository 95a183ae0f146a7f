"""The policy of docs/live.md: everything that is asked, in words that IAM has."""

import re

from moto.iam.aws_managed_policies import aws_managed_policies_data

from infra.collect.documentation import FILE, document, rights
from policies.sources.live.tables import tables


def test_the_document_is_written_from_what_is_asked() -> None:
    assert FILE.read_text() == document(), "python -m infra.collect.documentation"


def test_rights_only_read() -> None:
    assert all(re.fullmatch(r"[a-z0-9-]+:(Describe|Get|List|View)\w+", right) for right in rights())


def test_rights_are_words_that_policies_of_aws_have() -> None:
    """An action that is not called as its operation is one that some policy of AWS names in full."""
    named = set(re.findall(r'"([a-z0-9-]+:[A-Za-z]+)"', aws_managed_policies_data))
    unlike = {question.right for question in tables("aws").questions.values() if question.right}
    assert unlike
    assert unlike - named == set()


def test_services_are_those_that_policies_of_aws_name() -> None:
    prefixes = {right.partition(":")[0] for right in rights()}
    assert prefixes <= set(re.findall(r'"([a-z0-9-]+):[A-Za-z*]+"', aws_managed_policies_data))
