"""Users with roles of a stack: their domains, and the login to MLflow of a stack without a cluster."""

from collections.abc import Iterator
from typing import Final

from infra.stackspec.layouts import SmallLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project

_CHECK: Final = "tracking-login"
# Accounts of no organization.
_CONSUMERS: Final = ("gmail.com", "googlemail.com")


def login(project: Project) -> Iterator[Answer]:
    """Users pass Identity-Aware Proxy with the OAuth client that Google manages: it admits the organization.

    Source: Identity-Aware Proxy documentation, "Customize OAuth configuration" (a client of Google's serves
    users of the project's organization; others, and projects without one, need a client of their own).
    """
    names, parent = domains(project), str(project.about.get("parent") or "")
    fix = (
        "Create an OAuth client and set it for the service after `up`: gcloud iap settings set (IAP "
        'documentation, "Customize OAuth configuration"); or move the project into the organization of '
        "its users. Jobs log in without it."
    )
    if not parent:
        text = f"{project.on.project} is in no organization: browsers cannot log in to MLflow"
        yield Answer(_CHECK, State.SHORT, text, fix)
    elif outside := consumers(project):
        text = f"not of the organization, so their browsers cannot log in to MLflow: {', '.join(outside)}"
        yield Answer(_CHECK, State.SHORT, text, fix)
    elif len(names) > 1:
        text = f"users of one organization log in to MLflow; here are several domains: {', '.join(names)}"
        yield Answer(_CHECK, State.NOTE, text, fix)
    else:
        yield Answer(
            _CHECK, State.READY, f"the project is in an organization, its users in {', '.join(names)}"
        )


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
