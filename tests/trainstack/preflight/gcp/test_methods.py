"""Methods of a preflight exist in the APIs, and are read-only."""

import re

import pytest

from tests.trainstack.preflight.gcp.asking import documents, row_of
from trainstack.preflight.gcp.methods import METHODS

# Of the methods that are sent with POST, because what they ask about is long.
READING = {"testIamPermissions", "getIamPolicy"}
OWN = {"testIamPermissions"}
PUBLIC = {"cloudbilling.services.skus.list"}


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_those_of_the_discovery_documents(name: str) -> None:
    method, (_, row) = METHODS[name], row_of(name)
    assert (method.verb, method.address) == (row["verb"], row["address"])
    assert set(method.page) <= set(row["parameters"])
    assert set(re.findall(r"\{(\w+)\}", method.address)) <= set(row["parameters"])


@pytest.mark.parametrize("name", METHODS)
def test_methods_only_read(name: str) -> None:
    method = METHODS[name]
    assert method.verb == "GET" or name.rpartition(".")[2] in READING
    # What is asked of oneself, or is public, needs no permission; all else says which.
    assert bool(method.right) != (name.rpartition(".")[2] in OWN or name in PUBLIC)
    assert not re.search(r"\.(create|update|delete|set\w*|use|actAs)$", method.right)


def test_every_document_says_where_it_is_from() -> None:
    assert all(row["source"] and row["date"] for row in documents().values())
