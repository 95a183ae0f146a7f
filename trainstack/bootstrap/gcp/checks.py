"""Preflight checks of what `trainstack bootstrap` prints: bucket of the state, trust, billing contacts."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from infra.clouds.gcp.api import ApiRequestError
from infra.stackspec.gcp.cloud import GcpSpec
from trainstack.bootstrap.gcp.project import CATEGORY, FEDERATED, TOKENS, ProjectNames, principal, short
from trainstack.bootstrap.setup import ClientSetup
from trainstack.bootstrap.stacks import BootstrapPlace
from trainstack.bootstrap.trust import Pipeline
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.deployment import state_elsewhere
from trainstack.preflight.gcp import Check
from trainstack.preflight.gcp.project import Project

BUCKET: Final = "state-bucket"
TRUST: Final = "deployer-trust"
CONTACT: Final = "budget-contact"

_WIDE = ("allUsers", "allAuthenticatedUsers", "domain:", "principalSet:")


def checks_of(setup: ClientSetup) -> Mapping[str, Check]:
    """The checks for the stacks of a client."""
    return {
        BUCKET: partial(_bucket, setup),
        TRUST: partial(_trust, setup),
        CONTACT: partial(_contacts, setup),
    }


def _names(setup: ClientSetup, project: Project) -> ProjectNames:
    spec = project.spec
    place = BootstrapPlace("gcp", project.on.project, spec.region, (spec,))
    return ProjectNames(short(setup.client), place, setup.client)


def _bucket(setup: ClientSetup, project: Project) -> Iterator[Answer]:
    """The bucket of the state exists, is encrypted, versioned and private, and takes locks.

    Pulumi's lock is an object that is deleted (pulumi pkg/backend/diy/lock.go): no retention may hold it.
    """
    if project.manager:
        yield state_elsewhere(BUCKET, project.manager)
        return
    names = _names(setup, project)
    bucket = setup.bucket("gs", names.bucket)
    if setup.backend and not setup.backend.startswith("gs://"):
        text = f"the state is in {setup.backend.partition('?')[0]}, not in a bucket of the project"
        yield Answer(BUCKET, State.NOTE, text, f"pulumi login gs://{names.bucket}")
        return
    found = project.found("storage.buckets.get", bucket=bucket)
    if found is None:
        yield Answer(BUCKET, State.SHORT, f"the bucket {bucket} does not exist", _apply(setup, project))
        return
    if found["projectNumber"] != project.number:
        text = f"{bucket} is of the project {found['projectNumber']}, not of {project.on.project}"
        fix = f"pulumi login with a bucket of your own; --skip {BUCKET} if that project is yours."
        yield Answer(BUCKET, State.SHORT, text, fix)
        return
    access = found.get("iamConfiguration") or {}
    uniform = (access.get("uniformBucketLevelAccess") or {}).get("enabled")
    missing = {
        f"--default-encryption-key={names.key}": (
            "is not encrypted by a key of the project",
            not (found.get("encryption") or {}).get("defaultKmsKeyName"),
        ),
        "--versioning": (
            "keeps no versions: a lost state cannot be restored",
            not (found.get("versioning") or {}).get("enabled"),
        ),
        "--public-access-prevention": (
            "does not prevent public access",
            access.get("publicAccessPrevention") != "enforced",
        ),
        "--uniform-bucket-level-access": ("has access lists of single objects", not uniform),
        "--clear-retention-period": (
            "holds objects for a period, so that no lock can be released",
            "retentionPolicy" in found,
        ),
        "--no-default-event-based-hold": (
            "holds each new object, so that no lock can be released",
            bool(found.get("defaultEventBasedHold")),
        ),
    }
    wrong = [(option, rule) for option, (rule, lacks) in missing.items() if lacks]
    for option, rule in wrong:
        fix = f"gcloud storage buckets update gs://{bucket} {option}"
        yield Answer(BUCKET, State.SHORT, f"{bucket} {rule}", fix)
    if not wrong:
        yield Answer(BUCKET, State.READY, f"{bucket} is encrypted, versioned and private, and takes locks")


def _trust(setup: ClientSetup, project: Project) -> Iterator[Answer]:
    """The deployer is used by the stack's own deployments: one subject, or members of the agency."""
    names = _names(setup, project)
    email = names.email(names.deployer(setup.large_stack(project.spec.name)))
    method = "iam.projects.serviceAccounts.getIamPolicy"
    try:
        policy = project.asked(method, resource=f"{project.path}/serviceAccounts/{email}")
    except ApiRequestError as error:
        if error.code != "NOT_FOUND":
            raise
        fix = f"{_apply(setup, project)} --skip {TRUST} if it deploys as another account."
        yield Answer(TRUST, State.SHORT, f"the service account {email} does not exist", fix)
        return
    users = [
        (str(row["role"]), str(member))
        for row in policy.get("bindings") or ()
        if row["role"] in (FEDERATED, TOKENS, "roles/iam.serviceAccountUser")
        for member in row.get("members") or ()
    ]
    pool = f"iam.googleapis.com/projects/{project.number}/locations/global/workloadIdentityPools/{names.pool}"
    host = project.manager
    if host and isinstance(host.on, GcpSpec) and not host.on.impersonate:
        deployer = f"serviceAccount:{names.deployer(host.name)}@{host.on.project}.iam.gserviceaccount.com"
        yield from _of_guest(project, email, deployer, users)
        return
    pipeline = setup.trusted_as(member.partition("/subject/")[2] for _, member in users)
    wanted = (
        principal(
            f"principal://{pool}", f"/subject/{names.subject(pipeline, setup.large_stack(project.spec.name))}"
        )
        if pipeline
        else ""
    )
    command = f"gcloud iam service-accounts {{}}-iam-policy-binding {email} --project={project.on.project} "
    surplus = [
        (role, member)
        for role, member in users
        if member.startswith(_WIDE) or (wanted and role == FEDERATED and member != wanted)
    ]
    for role, member in surplus:
        fix = command.format("remove") + f"--role={role} --member={shlex.quote(member)}"
        yield Answer(TRUST, State.SHORT, f"{email} can be used by {member}", fix)
    kept = [member for one in users if one not in surplus for member in one[1:]]
    if not kept:
        fix = _apply(setup, project)
        if wanted and setup.form_known:
            fix = command.format("add") + f"--role={FEDERATED} --member={shlex.quote(wanted)}"
        yield Answer(
            TRUST, State.SHORT, f"{email} can be used by no {'pipeline' if wanted else 'member'}", fix
        )
    elif wanted and wanted not in kept:
        text = f"{email} can be used by {', '.join(kept)}; the pipeline of {_repository(setup)} cannot"
        yield Answer(TRUST, State.NOTE, text, _apply(setup, project))
    elif pipeline:
        yield from _provider(
            setup, names, pipeline, project, f"{email} can be used by {wanted.rpartition('/')[2]}"
        )
    elif not surplus:
        yield Answer(TRUST, State.READY, f"{email} can be used by {', '.join(kept)}")


def _of_guest(
    project: Project, email: str, deployer: str, users: Sequence[tuple[str, str]]
) -> Iterator[Answer]:
    """The deployer of a cluster in its own project is used by that of its large stack alone."""
    command = f"gcloud iam service-accounts {{}}-iam-policy-binding {email} --project={project.on.project} "
    wanted = (TOKENS, deployer)
    for role, member in users:
        if (role, member) != wanted:
            fix = command.format("remove") + f"--role={role} --member={shlex.quote(member)}"
            yield Answer(TRUST, State.SHORT, f"{email} can be used by {member}", fix)
    if wanted not in users:
        fix = f"{command.format('add')}--role={TOKENS} --member={deployer}"
        yield Answer(TRUST, State.SHORT, f"{email} cannot be used by {deployer}", fix)
    elif project.on.impersonate != email:
        fix = f"Set on.impersonate to {email}, or --skip {TRUST} if it deploys as another account."
        yield Answer(TRUST, State.NOTE, f"the stack file names {project.on.impersonate}, not {email}", fix)
    elif len(users) == 1:
        yield Answer(TRUST, State.READY, f"{email} can be used by {deployer}")


def _provider(
    setup: ClientSetup, names: ProjectNames, pipeline: Pipeline, project: Project, ready: str
) -> Iterator[Answer]:
    """The pool accepts tokens of the repository alone, with the subjects that the deployer trusts."""
    method = "iam.projects.locations.workloadIdentityPools.providers.get"
    found = project.asked(method, name=names.provider(project.on.project))
    command = (
        f"gcloud iam workload-identity-pools providers update-oidc pipeline --project={project.on.project} "
        f"--location=global --workload-identity-pool={names.pool} "
    )
    claim = names.attributes(pipeline)["attribute.repository"]
    repository = f"{claim} == '{pipeline.path}'"
    subject = pipeline.subject(setup.large_stack(project.spec.name))
    condition = str(found.get("attributeCondition", ""))
    # Of other stacks of the client, the condition has further subjects.
    accepted = condition.startswith(f"{repository} && ") and (
        not pipeline.by_environment or f"'{subject}'" in condition
    )
    issuer = str((found.get("oidc") or {}).get("issuerUri", ""))
    if found.get("disabled") or found.get("state", "ACTIVE") != "ACTIVE":
        yield Answer(
            TRUST, State.SHORT, f"the provider of {names.pool} is disabled", f"{command}--no-disabled"
        )
    elif issuer != pipeline.issuer:
        fix = f"{command}--issuer-uri={pipeline.issuer}"
        yield Answer(TRUST, State.SHORT, f"{names.pool} takes tokens of {issuer or 'no issuer'}", fix)
    elif not accepted:
        text = f"the condition of {names.pool} is not that of {subject}: {condition or 'none'}"
        yield Answer(TRUST, State.SHORT, text, _apply(setup, project))
    elif found.get("attributeMapping") != names.attributes(pipeline):
        mapping = ",".join(f"{key}={value}" for key, value in names.attributes(pipeline).items())
        fix = f"{command}--attribute-mapping={shlex.quote(mapping)}"
        yield Answer(TRUST, State.SHORT, f"{names.pool} maps other claims", fix)
    else:
        yield setup.matched(TRUST, ready, pipeline, setup.large_stack(project.spec.name))


def _contacts(setup: ClientSetup, project: Project) -> Iterator[Answer]:
    """The addresses of the stack's budget are billing contacts of the project."""
    del setup
    method, wanted = "essentialcontacts.projects.contacts.list", project.spec.budget.alert_emails
    known = {
        str(row.get("email", "")).lower()
        for row in project.items(method, "contacts", parent=project.path)
        if {CATEGORY.upper(), "ALL"} & {*(row.get("notificationCategorySubscriptions") or ())}
    }
    missing = [one for one in wanted if one.lower() not in known]
    for one in missing:
        fix = (
            f"gcloud essential-contacts create --project={project.on.project} --email={one} "
            f"--notification-categories={CATEGORY} --language=en"
        )
        yield Answer(CONTACT, State.SHORT, f"{one} is no billing contact of {project.on.project}", fix)
    if not missing:
        yield Answer(CONTACT, State.READY, f"billing contacts: {', '.join(wanted)}")


def _repository(setup: ClientSetup) -> str:
    return setup.pipeline.repository if setup.pipeline else ""


def _apply(setup: ClientSetup, project: Project) -> str:
    return f"Print it: `{setup.command()}`; the administrator of project {project.on.project} applies it."
