"""The emulated Kubernetes is held against a real API server of the same version.

What is compared. Each sequence of requests goes to the emulation as the engine would send it (Check, then
Create, Update or Delete of the provider) and to the API server as the provider sends it: POST for a creation,
server-side apply for an update after taking over what POST wrote, DELETE (pulumi/pulumi-kubernetes
provider/pkg/await/await.go: Creation, ssaUpdate, fixCSAFieldManagers, Deletion). Two answers agree when

- both accept or both refuse, and
- where the API server names the fields at fault, the emulation names one of them, or one inside of it (an
  expression of a CustomResourceDefinition is about a whole object; the field helps the user), and, when the
  API server's answer is complete (its error 422), no other field. Places in lists are left out, since neither
  a decoding error nor server-side apply has them. Where it names none, the reasons are the same.

What a provider adds. The provider's Check holds an object against the API server's OpenAPI document and
reports nothing of what it finds (provider/pkg/provider/provider.go, Check). A field that nobody knows is
dropped by a creation, with a warning, and refused by the next update. The emulation refuses it at once; so
the API server is asked with `fieldValidation=Strict`, which makes it refuse the same.

What is not compared. Waiting: an object that exists and is not ready is accepted. Objects whose pods
admission keeps out (Pod Security, quotas, limit ranges, priority classes) are accepted by the API server, and
refused by the emulation because their await would never end: there the API server is asked for the pod that
the controller would make, and has to refuse it.

Exceptions, with reason and source, are listed in `exceptions.toml`; at most 2 % of the sequences.
"""

from collections.abc import Callable

import pytest

from rehearsal.controlplane.api import Api
from tests.cluster.differential.comparison import compare, exceptions
from tests.cluster.differential.corpus import corpus
from tests.rehearsal.kubernetes.conftest import rehearsed, schemas
from tests.rehearsal.kubernetes.harness import Rehearsed

__all__ = ["rehearsed", "schemas"]

_MOST_EXCEPTIONS = 0.02


@pytest.mark.timeout(900)
def test_the_emulation_answers_as_the_api_server_does(
    rehearsed: Rehearsed, api: Api, record_property: Callable[[str, object], None]
) -> None:
    found = compare(corpus(), rehearsed, api)
    for what in ("agree", "foreseen", "excepted"):
        record_property(what, len(getattr(found, what)))
    assert found.sequences >= 400
    assert "\n\n".join(f"{name}\n{said}" for name, said in found.disagree.items()) == ""
    assert found.idle == [], "these agree now: take them off the list"


def test_exceptions_are_few_argued_and_about_sequences_that_exist() -> None:
    listed = exceptions()
    names = {one.name for one in corpus()}
    assert set(listed) <= names
    assert len(listed) <= _MOST_EXCEPTIONS * len(names)
    assert all(row["reason"] and row["source"] for row in listed.values())
