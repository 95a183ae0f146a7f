"""The deployer's service accounts and the state bucket of a project, as a gcloud script and as Terraform."""

from collections.abc import Iterator

from trainstack.bootstrap import warnings
from trainstack.bootstrap.gcp import gcloud
from trainstack.bootstrap.gcp import terraform as terraform_file
from trainstack.bootstrap.gcp.project import PROVIDER, GcpProject, assuming, project
from trainstack.bootstrap.stacks import BootstrapPlace
from trainstack.bootstrap.trust import Pipeline, Trust

FORMS = ("gcloud", "terraform")
"""Forms of the printed file, the default first."""
_EXAMPLES = frozenset(
    {"012345-6789AB-CDEF01", "example-ml-dev", "example-ml-prod", "example-ml-jobs", "example-ml-small"}
)
"""Billing account and project of the shipped stack files."""


def printed(client: str, place: BootstrapPlace, trust: Trust, *, terraform: bool) -> tuple[str, list[str]]:
    """The file, and notes for the reader. Raises UserError for a trust of another cloud."""
    made = project(client, place, trust)
    text = terraform_file.render(made) if terraform else gcloud.render(made)
    steps = "terraform init && terraform apply" if terraform else "sh FILE"
    values = [place.name, *made.billing_accounts]
    examples = [one for one in values if one in _EXAMPLES]
    direct = [one.name for one in place.deployed if assuming(one) is None]
    readers = [one.account for one in made.identities() if not one.deploys]
    emails = [made.email(one) for one in (*map(made.deployer, direct), *readers)]
    uri, number = f"gs://{made.bucket}", made.provider("NUMBER")
    variables: list[str] = []
    if isinstance(trust, Pipeline):
        variables += warnings.variables(direct, emails, uri, **{PROVIDER: number})
        variables += ["NUMBER is that of the project: the file prints these values when it is applied."]
    return text, [
        *variables,
        *warnings.guests(place),
        *_logins(made),
        *warnings.of(place, trust, examples=examples, separable=True),
        f"The administrator of project {place.name} applies it: {steps}",
        *(
            [
                f"State: pulumi login {uri}; new stacks: pulumi stack init NAME "
                f"--secrets-provider 'gcpkms://{made.key}'"
            ]
            if place.has_state
            else []
        ),
    ]


def _logins(made: GcpProject) -> Iterator[str]:
    """Clusters whose files name another account than the one that is printed for them."""
    for deployed in made.place.deployed:
        email = made.email(made.deployer(deployed.name))
        names = [spec.name for spec in deployed.specs if getattr(spec.on, "impersonate", None) != email]
        if assuming(deployed) and names:
            yield f"Set on.impersonate of {', '.join(names)} to {email}."
