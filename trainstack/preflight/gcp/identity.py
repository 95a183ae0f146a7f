"""Identities: that of the deployer, and those of users with their login to MLflow without a cluster."""

from collections.abc import Iterator
from typing import Final

from infra.clouds.gcp.api import ApiRequestError
from infra.stackspec.gcp.cloud import OAuthClientSpec
from infra.stackspec.layouts import SmallLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project

_CHECK, _ADMINS, _LOGIN = "identity", "administrators", "tracking-login"
# Domains of mail for everyone: Google accounts there are in no organization.
_CONSUMERS: Final = frozenset({
    *("gmail.com", "googlemail.com", "gmx.de", "gmx.net", "hotmail.com", "icloud.com", "live.com", "me.com"),
    *("outlook.com", "proton.me", "protonmail.com", "qq.com", "web.de", "yahoo.com"),
})  # fmt: skip
_DENIED = "PERMISSION_DENIED"
_UNKNOWN = "the caller (not named by the credentials)"


def caller(project: Project) -> Iterator[Answer]:
    """The credentials are accepted and can read the project. Requests count against its quotas.

    Google reports the same error for a missing project and for one without access.
    """
    who, name = project.who or _UNKNOWN, project.on.project
    try:
        about = project.about
    except ApiRequestError as error:
        if error.code != _DENIED:
            raise
        text = f"project {name} does not exist, or {who} has no access to it: {error.message}"
        fix = "Correct on.project, log in as another member, or grant roles/browser on the project."
        yield Answer(_CHECK, State.SHORT, text, fix)
        return
    if about["state"] != "ACTIVE":
        text = f"project {name} is {str(about['state']).lower().replace('_', ' ')}"
        fix = f"gcloud projects undelete {name}, or correct on.project."
        yield Answer(_CHECK, State.SHORT, text, fix)
    else:
        yield Answer(_CHECK, State.READY, f"{who}, in project {name} (number {project.number})")


def administers(project: Project) -> Iterator[Answer]:
    """The deployer is one of the administrators by name. No API of the project lists members of groups."""
    # API servers know the deployer, not an account that it impersonates.
    who = project.who if project.deployer is None else project.deployer()
    groups = [one for one in project.on.admins if one.startswith("group:")]
    if who is None:
        fix = "Check that on.admins names the deployer, then --skip administrators here."
        yield Answer(_ADMINS, State.UNKNOWN, "the credentials do not name their member", fix)
    elif who in project.on.admins:
        yield Answer(_ADMINS, State.READY, f"{who}, an administrator of the cluster")
    elif groups:
        text = f"on.admins names {', '.join(groups)}, not {who}: its membership is not checked"
        yield Answer(_ADMINS, State.NOTE, text, "Check the membership, or name it in on.admins.")
    else:
        text = f"{who} is none of on.admins: after a deployment by another it administers nothing"
        fix = f"Deploy as one of {', '.join(project.on.admins)}, or add the deployer."
        yield Answer(_ADMINS, State.SHORT, text, fix)


def login(project: Project) -> Iterator[Answer]:
    """Users pass Identity-Aware Proxy with the OAuth client that Google manages: it admits the organization.

    Source: Identity-Aware Proxy documentation, "Customize OAuth configuration" (a client of Google's serves
    users of the project's organization; others, and projects without one, need a client of their own).
    """
    if project.on.login is not None:
        yield _of_client(project, project.on.login)
        return
    names, parent = domains(project), str(project.about.get("parent") or "")
    fix = (
        "Name an OAuth client in on.login (docs/how-to/jobs.md), or move the project into the organization "
        "of its users. Jobs log in without it."
    )
    if not parent:
        text = f"{project.on.project} is in no organization: browsers cannot log in to MLflow"
        yield Answer(_LOGIN, State.SHORT, text, fix)
    elif outside := consumers(project):
        text = f"not of the organization, so their browsers cannot log in to MLflow: {', '.join(outside)}"
        yield Answer(_LOGIN, State.SHORT, text, fix)
    elif names == [own := _organization(project, parent)]:
        yield Answer(_LOGIN, State.READY, f"the users are of {own}, the organization of the project")
    else:
        whose = own or "not readable (resourcemanager.organizations.get)"
        text = f"users of the project's organization log in to MLflow: {whose}; users: {', '.join(names)}"
        yield Answer(_LOGIN, State.NOTE, text, f"If these are not its domains: {fix}")


def _of_client(project: Project, client: OAuthClientSpec) -> Answer:
    """The newest version of the client's secret can be read: `up` reads it, whatever versions precede it."""
    secret = client.client_secret
    version = project.found("secretmanager.projects.secrets.versions.get", name=f"{secret}/versions/latest")
    add = f"gcloud secrets versions add {secret} --data-file=-"
    if version is None:
        text = f"on.login.client_secret: {secret} does not exist, or has no version"
        return Answer(_LOGIN, State.SHORT, text, f"Create it (docs/how-to/jobs.md), or: {add}")
    if version["state"] != "ENABLED":
        name, state = str(version["name"]), str(version["state"]).lower()
        text = f"on.login.client_secret: the newest version of {secret} is {state}"
        enable = f", or: gcloud secrets versions enable {name}" if state == "disabled" else ""
        return Answer(_LOGIN, State.SHORT, text, f"{add}{enable}")
    return Answer(
        _LOGIN, State.READY, f"users log in to MLflow by the OAuth client {client.client_id}, of any domain"
    )


def _organization(project: Project, parent: str) -> str:
    """Name of the organization above a project, its primary domain; empty where it may not be read."""
    try:
        while parent.startswith("folders/"):
            parent = str(project.asked("cloudresourcemanager.folders.get", name=parent)["parent"])
        return str(project.asked("cloudresourcemanager.organizations.get", name=parent)["displayName"])
    except ApiRequestError as error:
        if error.code != _DENIED:
            raise
        return ""


def consumers(project: Project) -> list[str]:
    """Members with accounts of no organization."""
    return [one for one in _members(project) if one.rpartition("@")[2] in _CONSUMERS]


def domains(project: Project) -> list[str]:
    """Domains of the members, without accounts of services."""
    found = {one.rpartition("@")[2] for one in _members(project)}
    return sorted(one for one in found if one and not one.endswith("gserviceaccount.com"))


def _members(project: Project) -> list[str]:
    if isinstance(project.layout, SmallLayout):
        return [one.email.lower() for one in project.layout.people]
    teams = [member for team in project.spec.teams for member in team.members]
    return [one.lower() for one in (*project.on.admins, *teams)]
