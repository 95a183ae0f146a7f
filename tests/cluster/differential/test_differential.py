"""The emulated Kubernetes responds as a real API server of the same version; see comparison.py."""

import pytest

from rehearsal.controlplane.api import KubernetesApi
from tests.cluster.differential.comparison import compare, exceptions
from tests.cluster.differential.corpus import corpus
from tests.rehearsal.kubernetes.conftest import rehearsed, schemas
from tests.rehearsal.kubernetes.harness import Rehearsed

__all__ = ["rehearsed", "schemas"]

# Whole stacks are composed, and compared with an API server: minutes.
pytestmark = [pytest.mark.timeout(900), pytest.mark.more]
_MOST_EXCEPTIONS = 0.02


def test_the_emulation_answers_as_the_api_server_does(rehearsed: Rehearsed, api: KubernetesApi) -> None:
    found = compare(corpus(), rehearsed, api)
    assert found.sequences >= 400
    assert "\n\n".join(f"{name}\n{said}" for name, said in found.disagree.items()) == ""
    assert found.idle == [], "these agree now: take them off the list"


def test_exceptions_are_few_argued_and_about_sequences_that_exist() -> None:
    listed = exceptions()
    names = {one.name for one in corpus()}
    assert set(listed) <= names
    assert len(listed) <= _MOST_EXCEPTIONS * len(names)
    assert all(row["reason"] and row["source"] for row in listed.values())
