"""The deployer's roles and the state bucket of an AWS account, as CloudFormation and as Terraform."""

import itertools
from collections.abc import Iterator

from infra.errors import Problem, raise_all
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import ClusterLayout
from trainstack.bootstrap import warnings
from trainstack.bootstrap.aws import cloudformation
from trainstack.bootstrap.aws import terraform as terraform_file
from trainstack.bootstrap.aws.account import ClientAccount, account
from trainstack.bootstrap.stacks import BootstrapPlace
from trainstack.bootstrap.trust import Pipeline, Trust

FORMS = ("cloudformation", "terraform")
"""Forms of the printed file, the default first."""
_EXAMPLE = "123456789012"
"""The account of the shipped stack files."""


def printed(client: str, place: BootstrapPlace, trust: Trust, *, terraform: bool) -> tuple[str, list[str]]:
    """The file, and notes for the reader.

    Raises UserError for a trust of another cloud, and for names that begin with that of another stack.
    """
    raise_all(_overlaps(place))
    made = account(client, place, trust)
    text = terraform_file.render(made) if terraform else cloudformation.render(made)
    uri = f"s3://{made.bucket}?region={place.region}"
    steps = "terraform init && terraform apply"
    if not terraform:
        long = " --s3-bucket BUCKET" if len(text) > cloudformation.MOST_BYTES else ""
        steps = (
            f"aws cloudformation deploy --stack-name trainstack-{made.client} --region {place.region} "
            f"--capabilities CAPABILITY_NAMED_IAM --template-file FILE{long}"
        )
    notes = [f"The administrator of account {place.name} applies it: {steps}"]
    if not terraform and len(text) > cloudformation.MOST_BYTES:
        notes += [
            "The template is longer than CloudFormation takes from a file: BUCKET is any bucket of the "
            "administrator in this region. Or print it with --form terraform."
        ]
    notes += [f"State: pulumi login '{uri}'"]
    notes += [
        f"A new stack: pulumi stack init {spec.name} --secrets-provider '{made.secrets_provider(spec)}'"
        for spec in place.specs
    ]
    examples = [place.name] if place.name == _EXAMPLE else []
    if isinstance(trust, Pipeline):
        arns = [f"arn:aws:iam::{place.name}:role/{one.name}" for one in made.roles("")]
        notes += warnings.variables([spec.name for spec in place.specs], arns, uri)
    notes += warnings.of(place, trust, examples=examples, separable=False)
    notes += _administrators(made)
    notes += [
        f"{stack} limits its roles by {arn}, not by {made.roles_boundary_arn}: check that roles with it "
        "change no IAM, read no state and reach no role of others. Deployers cannot change that policy."
        for stack, arn in made.other_boundaries.items()
    ]
    if made.unbounded:
        limit = f"on.permissions_boundary: {made.roles_boundary_arn}"
        notes += [
            f"Set `{limit}` in the stack files of {', '.join(made.unbounded)}: deployers can create no role "
            "without this boundary."
        ]
    return text, notes


def _overlaps(place: BootstrapPlace) -> Iterator[Problem]:
    """Deployers have rights to the resources STACK-*, whichever stack these are of."""
    names = [spec.name for spec in place.specs]
    for first, second in itertools.permutations(names, 2):
        if second.startswith(f"{first}-"):
            rule = (
                f"begins with the name of another stack of {place.name}, whose deployer may change {first}-*"
            )
            other = first + second.removeprefix(f"{first}-")
            fix = f"Rename it, such as {other}, or give it another account."
            yield Problem("stacks", second, rule, fix, code="bootstrap-names-overlap")


def _administrators(made: ClientAccount) -> list[str]:
    """Access entries that clusters lack: only `on.admin_arns` reach the API server."""
    nightly = [one.name for one in made.roles("") if one.name.endswith("-nightly")]
    notes = []
    for spec in made.place.specs:
        assert isinstance(spec.on, AwsSpec)
        wanted = [f"arn:aws:iam::{made.place.name}:role/{one}" for one in (made.role(spec), *nightly)]
        missing = [one for one in wanted if one not in spec.on.admin_arns]
        if isinstance(spec.layout, ClusterLayout) and missing:
            notes.append(f"Add to on.admin_arns of {spec.name}: {', '.join(missing)}")
    return notes
