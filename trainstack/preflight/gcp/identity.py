"""Who deploys: in the project of the stack, and among those who administer its cluster."""

from collections.abc import Iterator

from infra.clouds.gcp.api import ApiRequestError
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project

_CHECK, _ADMINS = "identity", "administrators"
_DENIED = "PERMISSION_DENIED"
_SOMEBODY = "who asks (the credentials do not tell)"


def caller(project: Project) -> Iterator[Answer]:
    """The credentials are accepted, and the project is there for them. Requests count against its quotas.

    Of a project that does not exist Google says the same as of one that may not be seen.
    """
    who, name = project.who or _SOMEBODY, project.on.project
    try:
        about = project.about
    except ApiRequestError as error:
        if error.code != _DENIED:
            raise
        said = f"project {name} does not exist, or {who} may not see it: {error.message}"
        fix = "Correct on.project, log in as somebody else, or grant roles/browser on the project."
        yield Answer(_CHECK, State.SHORT, said, fix)
        return
    if about["state"] != "ACTIVE":
        said = f"project {name} is {str(about['state']).lower().replace('_', ' ')}"
        fix = f"gcloud projects undelete {name}, or correct on.project."
        yield Answer(_CHECK, State.SHORT, said, fix)
    else:
        yield Answer(_CHECK, State.READY, f"{who}, in project {name} (number {project.number})")


def administers(project: Project) -> Iterator[Answer]:
    """Who deploys is among the administrators, by name. Members of groups no API of the project tells."""
    who, groups = project.who, [one for one in project.on.admins if one.startswith("group:")]
    if who is None:
        fix = "See that on.admins names who deploys, then --skip administrators here."
        yield Answer(_ADMINS, State.UNKNOWN, "the credentials do not tell whose they are", fix)
    elif who in project.on.admins:
        yield Answer(_ADMINS, State.READY, f"{who}, an administrator of the cluster")
    elif groups:
        said = f"on.admins names {', '.join(groups)}, and not {who}: whether it is a member is not asked"
        yield Answer(_ADMINS, State.NOTE, said, "See that it is, or name it under on.admins.")
    else:
        said = f"{who} is none of on.admins: once another deploys, it administers nothing"
        fix = f"Deploy as one of {', '.join(project.on.admins)}, or name the one that deploys."
        yield Answer(_ADMINS, State.SHORT, said, fix)
