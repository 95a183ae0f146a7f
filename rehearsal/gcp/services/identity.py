"""Keys, secret versions and workload identity pools.

Source: terraform-provider-google, services/resourcemanager, secretmanager; ids of deleted pools: IAM REST
reference, projects.locations.workloadIdentityPools.create, and its issue 14191 (text of the error).
"""

import base64
import json
import time
from collections.abc import Mapping

from rehearsal.accounts import project_number
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, Record, RefusalError
from rehearsal.dataplane.gcp.secret_store import SPACE
from rehearsal.gcp import iam_delay, service_agents
from rehearsal.gcp.site import Site


def _key_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """A credentials file in Google's format, with a key without rights."""
    account = site.find(inputs.get("serviceAccountId"), "serviceaccount/account:Account")
    identity = draw(f"{seed}/key", 40)
    name = f"{account.id if account else inputs.get('serviceAccountId')}/keys/{identity}"
    email = account.outputs["email"] if account else ""
    content = {
        "type": "service_account",
        "project_id": site.project,
        "private_key_id": identity,
        "private_key": "-----BEGIN PRIVATE KEY-----\nrehearsal\n-----END PRIVATE KEY-----\n",
        "client_email": email,
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    encoded = base64.b64encode(json.dumps(content).encode()).decode()
    return {"id": name, "name": name, "privateKey": encoded}


def _version_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """Versions of a secret are numbered from 1."""
    secret = site.find(inputs.get("secret"), "secretmanager/secret:Secret")
    base = secret.outputs["name"] if secret else str(inputs.get("secret"))
    taken = [
        int(one.outputs["version"])
        for one in site.all("secretmanager/secretVersion:SecretVersion")
        if str(one.outputs["name"]).startswith(f"{base}/versions/")
    ]
    number = max(taken, default=0) + 1
    name = f"{base}/versions/{number}"
    return {"id": name, "name": name, "version": str(number)}


def _agent_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """The service agent of an API in this project."""
    email = service_agents.email(str(inputs.get("service")), project_number(site.project))
    return {"email": email, "member": f"serviceAccount:{email}"} if email else {}


def _created(site: Site, record: Record) -> None:
    iam_delay.begin(site.state, str(record.key))


def _secret_deleted(site: Site, secret: Record) -> None:
    """Delete the versions of a secret; its name can be used again."""
    site.state.drop_document(SPACE, secret.id)


# Documents: id of a deleted pool -> time until which no other may have it.
_DELETED_POOLS = "deleted-identity-pools"
_POOL_KEPT_S = 30 * 86_400


def _pool_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """A deleted pool keeps its id for 30 days."""
    name = f"{site.project}/{inputs.get('workloadIdentityPoolId')}"
    until = site.state.document(_DELETED_POOLS, name)
    if until is not None and until > time.time():
        message = "Requested entity already exists"
        fix = "A deleted pool keeps its id for 30 days: choose another, or undelete and import that one."
        raise RefusalError("alreadyExists", message, fix)
    return {}


def _pool_deleted(site: Site, pool: Record) -> None:
    name = f"{site.project}/{pool.inputs.get('workloadIdentityPoolId')}"
    site.state.put_document(_DELETED_POOLS, name, time.time() + _POOL_KEPT_S)


HOOKS: Mapping[str, Hooks[Site]] = {
    "serviceaccount/key:Key": Hooks(outputs=_key_outputs),
    "iam/workloadIdentityPool:WorkloadIdentityPool": Hooks(outputs=_pool_outputs, deleted=_pool_deleted),
    "projects/serviceIdentity:ServiceIdentity": Hooks(outputs=_agent_outputs, created=_created),
    "projects/iAMMember:IAMMember": Hooks(created=_created),
    "projects/iAMBinding:IAMBinding": Hooks(created=_created),
    "secretmanager/secret:Secret": Hooks(deleted=_secret_deleted),
    "secretmanager/secretVersion:SecretVersion": Hooks(outputs=_version_outputs),
}
