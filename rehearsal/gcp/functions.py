"""Provider functions: lookups that create nothing."""

import base64
import json
import zlib
from collections.abc import Mapping

from rehearsal.accounts import project_number
from rehearsal.core.emulation.functions import Function, absent, answer
from rehearsal.core.emulation.table import Row
from rehearsal.core.emulation.templates import digits, draw
from rehearsal.core.model import Properties, RefusalError
from rehearsal.gcp import facts, iam_delay, implicit, service_agents
from rehearsal.gcp.data_sources import lists
from rehearsal.gcp.site import MISSING, Site
from rehearsal.gcp.table import TABLE

_ACCOUNT = "serviceaccount/account:Account"


def answer_to(site: Site, args: Properties) -> Properties:
    """Result of the function in the site's call. Raises RefusalError when it is not emulated."""
    return answer(TABLE, FUNCTIONS, _read, site, args)


def _read(site: Site, token: str, args: Properties) -> Properties:
    """Outputs of an emulated resource, found by name or id."""
    row = TABLE.rows[f"gcp:{token}"]
    keys = ("selfLink", "id", row.name, "name", "accountId", "secretId", "repositoryId", "instanceId")
    value = next((args[key] for key in keys if isinstance(args.get(key), str)), None)
    record = site.find(value, token)
    if record is not None:
        return {**args, **record.outputs, "id": record.id}
    found = implicit.find(site, f"gcp:{token}", _whole(site, row, token, args, value))
    if found is not None:
        return {**args, **found.outputs, "id": found.id}
    raise absent(TABLE, token, value, MISSING)


def _whole(site: Site, row: Row, token: str, args: Properties, value: object) -> str:
    """The id of what a lookup names; a region among the arguments is before its name."""
    name = str(value)
    if token == _ACCOUNT and "@" not in name:
        return f"projects/{site.project}/serviceAccounts/{name}@{_domain(name)}"
    region = args.get("region")
    plain = isinstance(region, str) and "/" not in name and row.place == "region"
    return implicit.canonical(row, site, f"{region}/{name}" if plain else name)


def _domain(name: str) -> str:
    """The domain of a default account, by the first part of its address."""
    return "developer.gserviceaccount.com" if name.endswith("-compute") else "appspot.gserviceaccount.com"


def _client(site: Site, args: Properties) -> Properties:
    places = {name: site.located.get(name, "") for name in ("region", "zone")}
    token = f"ya29.{draw(site.project, 40)}"
    return {"id": f"projects/{site.project}", "project": site.project, **places, "accessToken": token}


def _project(site: Site, args: Properties) -> Properties:
    name = str(args.get("projectId") or site.project)
    if not name:
        raise RefusalError("badRequest", "project: required field is not set", "Set gcp:project.")
    return {
        "id": f"projects/{name}",
        "projectId": name,
        "name": name,
        "number": project_number(name),
        "labels": {},
        "effectiveLabels": {},
        "autoCreateNetwork": True,
        "billingAccount": "",
        "folderId": "",
        "orgId": "",
    }


def _projects(site: Site, args: Properties) -> Properties:
    one = _project(site, {})
    row = {**one, "lifecycleState": "ACTIVE", "parent": {}, "createTime": ""}
    return {**args, "id": str(args.get("filter")), "projects": [row]}


def _zones(site: Site, args: Properties) -> Properties:
    region = str(args.get("region") or site.located.get("region") or "")
    if not region:
        raise RefusalError(
            "badRequest", "region: required field is not set", "Pass region or set gcp:region."
        )
    return {
        **args,
        "id": f"projects/{site.project}/regions/{region}",
        "names": list(facts.zones(region)),
        "project": site.project,
        "region": region,
    }


def _image(site: Site, args: Properties) -> Properties:
    """An arbitrary image: the newest cannot be known offline."""
    owner = args.get("project") or site.project
    family, name = args.get("family"), args.get("name")
    if not family and not name and not args.get("filter"):
        raise RefusalError(
            "badRequest", "one of name, family or filters must be set", "Pass family and project."
        )
    found = str(name or f"{family or 'image'}-v00000000")
    path = f"projects/{owner}/global/images/{found}"
    return {
        **args,
        "id": path,
        "name": found,
        "family": family or "",
        "project": owner,
        "selfLink": f"https://www.googleapis.com/compute/v1/{path}",
        "imageId": digits(path, 19),
        "diskSizeGb": 10,
        "status": "READY",
        "archiveSizeBytes": 0,
        "creationTimestamp": "",
        "description": "",
        "imageEncryptionKeySha256": "",
        "labelFingerprint": "",
        "labels": {},
        "licenses": [],
        "sourceDisk": "",
        "sourceDiskEncryptionKeySha256": "",
        "sourceDiskId": "",
        "sourceImageId": "",
    }


def _versions(site: Site, args: Properties) -> Properties:
    """The known GKE versions; the real list changes weekly."""
    names = list(facts.catalog().gke_versions)
    prefix = str(args.get("versionPrefix") or "")
    fitting = [name for name in names if name.startswith(prefix)]
    if not fitting:
        raise RefusalError(
            "notFound",
            f"no known GKE version begins with {prefix!r}; known are {', '.join(names)}",
            "Add it to infra/catalog/gcp/tables/gke.toml with its source.",
        )
    channels = ("RAPID", "REGULAR", "STABLE")
    return {
        **args,
        "id": "versions",
        "defaultClusterVersion": names[0],
        "latestMasterVersion": fitting[0],
        "latestNodeVersion": fitting[0],
        "validMasterVersions": fitting,
        "validNodeVersions": fitting,
        "releaseChannelDefaultVersion": dict.fromkeys(channels, names[0]),
        "releaseChannelLatestVersion": dict.fromkeys(channels, fitting[0]),
        "releaseChannelUpgradeTargetVersion": dict.fromkeys(channels, fitting[0]),
    }


def _default_account(site: Site, args: Properties) -> Properties:
    found = implicit.account(site, f"{site.number}-compute@developer.gserviceaccount.com")
    return {} if found is None else {**found.outputs, "id": found.id, "project": site.project}


def _app_engine_account(site: Site, args: Properties) -> Properties:
    found = implicit.account(site, f"{site.project}@appspot.gserviceaccount.com")
    return {} if found is None else {**found.outputs, "id": found.id, "project": site.project}


def _networks(site: Site, args: Properties) -> Properties:
    """The names of a project's networks, with the default one."""
    implicit.find(site, implicit.NETWORK, f"projects/{site.project}/global/networks/default")
    found = [one for one in site.all("compute/network:Network") if one.scope == site.project]
    return {
        **args,
        "id": f"projects/{site.project}/global/networks",
        "project": site.project,
        "networks": sorted(one.name for one in found),
        "selfLink": f"https://www.googleapis.com/compute/v1/projects/{site.project}/global/networks",
    }


def _storage_agent(site: Site, args: Properties) -> Properties:
    """The first question creates it (Cloud Storage documentation, "Service agents")."""
    email = service_agents.email("storage.googleapis.com", project_number(site.project))
    iam_delay.begin(site.state, email, again=False)
    return {
        **args,
        "id": email,
        "emailAddress": email,
        "member": f"serviceAccount:{email}",
        "project": site.project,
    }


def _secret_value(site: Site, args: Properties) -> Properties:
    secret = site.find(args.get("secret"), "secretmanager/secret:Secret")
    base = f"{secret.outputs['name']}/versions/" if secret else "\0"
    found = [
        one
        for one in site.all("secretmanager/secretVersion:SecretVersion")
        if str(one.outputs["name"]).startswith(base)
    ]
    wanted = str(args.get("version") or "latest")
    fitting = [one for one in found if wanted in ("latest", one.outputs["version"])]
    if not fitting:
        raise RefusalError(
            "notFound",
            f"Secret [{args.get('secret')}] not found or has no versions.",
            "Create it before; one that exists in the real project: `trainstack rehearse seed`.",
        )
    chosen = fitting[-1]
    data = str(chosen.outputs.get("secretData") or "")
    if args.get("isSecretDataBase64"):
        data = base64.b64encode(data.encode()).decode()
    return {**args, **chosen.outputs, "id": chosen.id, "secretData": data}


def _homes(site: Site, args: Properties) -> Properties:
    """A list of shares, of which an instance as a resource has one."""
    found = _read(site, "filestore/instance:Instance", args)
    return {**found, "fileShares": [found["fileShares"]]}


def _policy(site: Site, args: Properties) -> Properties:
    """An IAM policy as text; it asks nothing of the cloud."""
    bindings: dict[str, dict[str, object]] = {}
    members: dict[str, set[str]] = {}
    for one in args.get("bindings") or ():
        key = json.dumps([one.get("role"), one.get("condition")], sort_keys=True)
        more = {"condition": one["condition"]} if one.get("condition") else {}
        found = bindings.setdefault(key, {**more, "members": [], "role": one.get("role")})
        members[key] = members.get(key, set()) | set(one.get("members") or ())
        found["members"] = sorted(members[key])
    text = json.dumps({"bindings": [bindings[key] for key in sorted(bindings)]}, separators=(",", ":"))
    return {**args, "id": str(zlib.crc32(text.encode())), "policyData": text}


FUNCTIONS: Mapping[str, Function[Site]] = {
    **lists.FUNCTIONS,
    "organizations/getClientConfig": _client,
    "organizations/getProject": _project,
    "organizations/getIAMPolicy": _policy,
    "projects/getProject": _projects,
    "compute/getZones": _zones,
    "compute/getImage": _image,
    "compute/getDefaultServiceAccount": _default_account,
    "compute/getNetworks": _networks,
    "appengine/getDefaultServiceAccount": _app_engine_account,
    "container/getEngineVersions": _versions,
    "storage/getProjectServiceAccount": _storage_agent,
    "filestore/getInstance": _homes,
    "secretmanager/getSecretVersion": _secret_value,
    "secretmanager/getSecretVersionAccess": _secret_value,
}
