"""Keys and secret versions. Source: terraform-provider-google, services/resourcemanager, secretmanager."""

import base64
import json
from collections.abc import Mapping

from rehearsal.accounts import project_number
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, Record
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


HOOKS: Mapping[str, Hooks[Site]] = {
    "serviceaccount/key:Key": Hooks(outputs=_key_outputs),
    "projects/serviceIdentity:ServiceIdentity": Hooks(outputs=_agent_outputs, created=_created),
    "projects/iAMMember:IAMMember": Hooks(created=_created),
    "projects/iAMBinding:IAMBinding": Hooks(created=_created),
    "secretmanager/secret:Secret": Hooks(deleted=_secret_deleted),
    "secretmanager/secretVersion:SecretVersion": Hooks(outputs=_version_outputs),
}
