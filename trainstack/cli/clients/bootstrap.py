"""`trainstack bootstrap`: what a client's administrator creates, printed."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from infra.errors import Problem, collected, raise_all
from trainstack.cli.output import Format, FormatOption, print_json

SCHEMA = "trainstack.bootstrap/1"


class Form(StrEnum):
    """Form of the output."""

    CLOUDFORMATION = "cloudformation"
    TERRAFORM = "terraform"
    GCLOUD = "gcloud"


Client = Annotated[
    Path | None, typer.Argument(metavar="CLIENT", help="Folder of the client; default: the present one.")
]
Stacks = Annotated[
    list[str] | None,
    typer.Option("--stack", "-s", help="A stack of the account or project, all of whose stacks are printed."),
]
FormOption = Annotated[
    Form | None, typer.Option("--form", help="Default: cloudformation on AWS, gcloud on Google Cloud.")
]
AgencyRole = Annotated[
    str, typer.Option("--agency-role", help="AWS: ARN of the role that assumes the deployer.")
]
ExternalId = Annotated[
    str, typer.Option("--external-id", help="With --agency-role: the id agreed with the client.")
]
AgencyMember = Annotated[
    str, typer.Option("--agency-member", help="Google Cloud: user:, group: or serviceAccount: of the agency.")
]
GitHub = Annotated[
    str,
    typer.Option(
        "--github",
        help="OWNER/REPOSITORY, or OWNER@ID/REPOSITORY@ID, whose environments, named as the stacks, deploy.",
        metavar="PATH",
    ),
]
GitLab = Annotated[
    str, typer.Option("--gitlab", help="GROUP/PROJECT at gitlab.com whose --branch deploys.", metavar="PATH")
]
Branch = Annotated[str, typer.Option("--branch", help="With --gitlab: the branch that deploys.")]


def bootstrap(
    client: Client = None,
    *,
    stack: Stacks = None,
    form: FormOption = None,
    agency_role: AgencyRole = "",
    external_id: ExternalId = "",
    agency_member: AgencyMember = "",
    github: GitHub = "",
    gitlab: GitLab = "",
    branch: Branch = "main",
    output: FormatOption = Format.TEXT,
) -> None:
    """Print what a client's administrator creates before the first deployment; changes nothing.

    A deployer per stack with the rights that its spec needs, its trust, a bucket for the state, a budget.
    """
    from trainstack.bootstrap import stacks, trust  # noqa: PLC0415 - help needs none of them
    from trainstack.cli.clouds.choice import services_of  # noqa: PLC0415

    folder, problems = (client or Path()).resolve(), list[Problem]()
    with collected(problems):
        chosen = trust.chosen(
            agency_role=agency_role, external_id=external_id, agency_member=agency_member, github=github,
            gitlab=gitlab, branch=branch,
        )  # fmt: skip
    with collected(problems):
        place = stacks.place(folder, stack or ())
        setup = services_of(place.cloud).setup()
        if form and form not in setup.FORMS:
            fix = f"Choose from {', '.join(setup.FORMS)}."
            rule = f"is not a form for stacks on {place.cloud}"
            problems.append(Problem("--form", form, rule, fix, code="bootstrap-form-of-other-cloud"))
    raise_all(problems)
    name = stacks.client_name(folder)
    text, notes = setup.printed(name, place, chosen, terraform=form is Form.TERRAFORM)
    if output is Format.JSON:
        names = [spec.name for spec in place.specs]
        found = {"client": name, "cloud": place.cloud, "stacks": names, "form": form or setup.FORMS[0]}
        print_json(SCHEMA, found | {"text": text, "notes": list(notes)})
        return
    typer.echo(text, nl=False)
    for note in notes:
        typer.echo(note, err=True)
