"""The API server compiles every policy of the manager of several clusters."""

import uuid

from components.kubernetes.people import group
from components.kubernetes.queueing.admission import policies
from rehearsal.controlplane.api import KubernetesApi
from tests.components.kubernetes.queueing.objects import FLAVORS


def test_the_api_server_takes_the_policies_of_a_manager(api: KubernetesApi) -> None:
    made = policies(FLAVORS, [group("members")], sends=True)
    of_kind = [body for body in made if body["kind"] == "ValidatingAdmissionPolicy"]
    assert len(of_kind) > 5
    for body in of_kind:
        name = f"{body['metadata']['name']}-{uuid.uuid4().hex[:6]}"
        api.create({**body, "metadata": {**body["metadata"], "name": name}}, dry_run=True)
