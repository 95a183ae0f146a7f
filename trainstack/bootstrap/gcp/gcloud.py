"""The project's resources as a script of gcloud commands, which can be run again."""

import shlex
from collections.abc import Iterator

from trainstack.bootstrap.gcp.project import (
    BILLING_ROLE,
    CATEGORY,
    KEY,
    KEY_RING,
    PROVIDER,
    GcpProject,
    Identity,
    assuming,
    is_of_pool,
    principal,
)
from trainstack.bootstrap.trust import Pipeline, variable

_HEAD = """\
#!/bin/sh
# Deployers of trainstack and their state, for {client}. An administrator of the project and of its billing
# account runs it; it can be run again.
set -eu

number=$(gcloud projects describe {project} --format='value(projectNumber)')
"""


def render(project: GcpProject) -> str:
    """The script."""
    head = _HEAD.format(client=project.client, project=project.place.name)
    return "\n".join([head, *_lines(project)]) + "\n"


def _lines(project: GcpProject) -> Iterator[str]:
    name, region = project.place.name, project.place.region
    here = f"--project={name}"
    yield _command("services", "enable", *project.apis, here)
    yield "\n# The state: encrypted by a key of the project, versioned, never public."
    ring = (f"--keyring={KEY_RING}", f"--location={region}", here)
    yield _made(("kms", "keyrings"), KEY_RING, (f"--location={region}", here))
    rotation = ("--purpose=encryption", "--rotation-period=90d", "--next-rotation-time=p90d")
    yield _made(("kms", "keys"), KEY, ring, rotation)
    yield _command("storage", "service-agent", here, f"--authorize-cmek={project.key}")
    bucket = f"gs://{project.bucket}"
    protected = ("--uniform-bucket-level-access", "--public-access-prevention")
    encrypted = f"--default-encryption-key={project.key}"
    # `describe` finds buckets of other projects, too: names are of all customers.
    own = _command("storage", "buckets", "list", here, "--format=value(name)")
    yield f"{own} | grep -Fqx {project.bucket} || " + _command(
        "storage", "buckets", "create", bucket, here, f"--location={region}", *protected, encrypted
    )
    yield _command("storage", "buckets", "update", bucket, "--versioning", *protected)
    if isinstance(project.trust, Pipeline):
        yield from _federation(project, project.trust)
    for one in project.identities():
        yield from _identity(project, one)
    yield "\n# The contact of the budget."
    for address in project.place.emails:
        listed = _command("essential-contacts", "list", here, "--format=value(email)")
        yield f"{listed} | grep -Fqx {shlex.quote(address)} || " + _command(
            "essential-contacts", "create", f"--email={address}", "--language=en",
            f"--notification-categories={CATEGORY}", here,
        )  # fmt: skip
    if isinstance(project.trust, Pipeline):
        yield "\n# Variables of the repository with the number of the project."
        for spec in (one for one in project.place.deployed if assuming(one) is None):
            yield f'echo "{variable(PROVIDER, spec.name)}={project.provider("$number")}"'


def _federation(project: GcpProject, trust: Pipeline) -> Iterator[str]:
    yield "\n# Tokens of one repository, for its deployments, previews and nightly checks alone."
    place = ("--location=global", f"--project={project.place.name}")
    yield _made(("iam", "workload-identity-pools"), project.pool, place)
    mapping = ",".join(f"{key}={value}" for key, value in project.attributes(trust).items())
    values = (f"--attribute-mapping={mapping}", f"--attribute-condition={project.condition(trust)}")
    in_pool = (f"--workload-identity-pool={project.pool}", *place)
    group = ("iam", "workload-identity-pools", "providers")
    create = _command(*group, "create-oidc", "pipeline", *in_pool, f"--issuer-uri={trust.issuer}", *values)
    yield f"{_command(*group, 'describe', 'pipeline', *in_pool)} >/dev/null 2>&1 || {create}"
    yield _command(*group, "update-oidc", "pipeline", *in_pool, f"--issuer-uri={trust.issuer}", *values)


def _identity(project: GcpProject, one: Identity) -> Iterator[str]:
    name = project.place.name
    email = project.email(one.account)
    here, member = f"--project={name}", f"--member=serviceAccount:{email}"
    yield f"\n# {one.title}."
    rights = f"--permissions={','.join(one.permissions)}"
    title = f"--title={one.title}"
    described = _command("iam", "roles", "describe", one.role, here)
    changed = _command("iam", "roles", "update", one.role, here, title, rights, "--quiet")
    created = _command("iam", "roles", "create", one.role, here, title, rights, "--stage=GA")
    yield f"if {described} >/dev/null 2>&1; then\n  {changed}\nelse\n  {created}\nfi"
    account = ("iam", "service-accounts")
    shown = _command(*account, "describe", email, here)
    created = _command(*account, "create", one.account, f"--display-name={one.title}", here)
    yield f"{shown} >/dev/null 2>&1 || {created}"
    bound, always = "add-iam-policy-binding", "--condition=None"
    yield _command("projects", bound, name, member, f"--role=projects/{name}/roles/{one.role}", always)
    for billing in project.billing_accounts if one.deploys else ():
        yield _command("billing", "accounts", bound, billing, member, f"--role={BILLING_ROLE}")
    bucket = f"gs://{project.bucket}"
    for role, condition in one.bucket:
        limit = f"--condition=expression={condition},title=Own objects" if condition else always
        yield _command("storage", "buckets", bound, bucket, member, f"--role={role}", limit)
    place = (f"--keyring={KEY_RING}", f"--location={project.place.region}", here)
    yield _command("kms", "keys", bound, KEY, *place, member, f"--role={one.key}")
    for who in one.members:
        use = _command(*account, bound, email, here, f"--role={one.use}")
        if is_of_pool(who):
            start = principal("principal://iam.googleapis.com/projects/$number", who).removesuffix(who)
            rest = shlex.quote(f"/locations/global/workloadIdentityPools/{project.pool}{who}")
            yield f'{use} --member="{start}"{rest}'
        else:
            yield f"{use} {shlex.quote(f'--member={who}')}"


def _made(group: tuple[str, ...], name: str, where: tuple[str, ...], more: tuple[str, ...] = ()) -> str:
    """A command that creates what does not exist."""
    create = _command(*group, "create", name, *where, *more)
    return f"{_command(*group, 'describe', name, *where)} >/dev/null 2>&1 || {create}"


def _command(*words: str) -> str:
    return shlex.join(["gcloud", *words])
