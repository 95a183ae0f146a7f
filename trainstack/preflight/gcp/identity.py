"""The deployer's identity: access to the project, and administration of its cluster."""

from collections.abc import Iterator

from infra.clouds.gcp.api import ApiRequestError
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project

_CHECK, _ADMINS = "identity", "administrators"
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
    who, groups = project.who, [one for one in project.on.admins if one.startswith("group:")]
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
