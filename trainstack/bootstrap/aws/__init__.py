"""The deployer's roles and the state bucket of an AWS account, as CloudFormation and as Terraform."""

import itertools
from collections.abc import Iterator

from infra.errors import Problem, raise_all
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.bootstrap import warnings
from trainstack.bootstrap.aws import cloudformation
from trainstack.bootstrap.aws import terraform as terraform_file
from trainstack.bootstrap.aws.account import ClientAccount, account, assuming, login_of
from trainstack.bootstrap.stacks import BootstrapPlace
from trainstack.bootstrap.trust import RESERVED, Pipeline, Trust

FORMS = ("cloudformation", "terraform")
"""Forms of the printed file, the default first."""
_EXAMPLE = "123456789012"
"""The account of the shipped stack files."""
_ROOT_OF_LOGIN = (
    "The deployer of {} runs scripts as root on its login node by an association of Systems Manager. No "
    "policy limits which machines an association names, so give the stack an account without managed "
    "machines of others."
)


def printed(client: str, place: BootstrapPlace, trust: Trust, *, terraform: bool) -> tuple[str, list[str]]:
    """The file, and notes for the reader.

    Raises UserError for a trust of another cloud, and for names that others have or continue.
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
    if place.has_state:
        notes += [f"State: pulumi login '{uri}'"]
    notes += [
        f"A new stack: pulumi stack init {name} --secrets-provider '{made.secrets_provider(name)}'"
        for one in place.deployed
        if not one.is_guest
        for name in one.states
    ]
    examples = [place.name] if place.name == _EXAMPLE else []
    if isinstance(trust, Pipeline):
        *_, preview, nightly = (one.name for one in made.roles(""))
        direct = [one.name for one in place.deployed if assuming(one) is None]
        roles = [*(made.role(one) for one in direct), preview, nightly]
        notes += warnings.variables(direct, [f"arn:aws:iam::{place.name}:role/{one}" for one in roles], uri)
    notes += warnings.of(place, trust, examples=examples, separable=False)
    notes += [
        f"{file} is not valid, so it is unknown whether a stack of it is in this account with a name that "
        "these deployers may change: correct it and print again."
        for file in place.unread
    ]
    notes += warnings.guests(place)
    notes += _administrators(made)
    notes += _logins(made)
    notes += [
        _ROOT_OF_LOGIN.format(spec.name) for spec in place.specs if isinstance(spec.layout, SlurmLayout)
    ]
    notes += [
        f"{spec.name} limits its roles by {arn}, not by {made.roles_boundary_arn(spec)}: check "
        "that roles with it change no IAM, read no state and reach nothing of others. Deployers cannot "
        "change that policy."
        for spec, arn in made.other_boundaries
    ]
    notes += [
        f"Set `on.permissions_boundary: {made.roles_boundary_arn(spec)}` in the stack file of {spec.name}: "
        "its deployer can create no role without this boundary."
        for spec in made.unbounded
    ]
    return text, notes


def _overlaps(place: BootstrapPlace) -> Iterator[Problem]:
    """Deployers have rights to the resources STACK-*, whichever stack these are of."""
    names = [one.name for one in place.deployed]
    for name in names:
        if f"{name}-".startswith(RESERVED):
            rule = f"gives names that begin as those of deployers and their state do: {', '.join(RESERVED)}"
            yield Problem("stacks", name, rule, "Rename it.", code="bootstrap-name-reserved")
    pairs = {*itertools.permutations(names, 2), *itertools.product(names, place.others)}
    pairs |= {*itertools.product(place.others, names)}
    for first, second in sorted(pairs):
        if f"{second}-".startswith(f"{first}-"):
            folder = place.others.get(first) or place.others.get(second)
            where = f", of another client in {folder}" if folder else ""
            rule = f"is or continues {first}, also in {place.name}{where}: its deployer may change {first}-*"
            fix = "Rename one, so that neither begins with the other and a dash, or give it another account."
            yield Problem("stacks", second, rule, fix, code="bootstrap-names-overlap")


def _logins(made: ClientAccount) -> Iterator[str]:
    """Clusters whose files name another role than the one that is printed for them."""
    for deployed in made.place.deployed:
        role = f"arn:aws:iam::{made.place.name}:role/{made.role(deployed.name)}"
        names = [spec.name for spec in deployed.specs if login_of(spec) != role]
        if assuming(deployed) and names:
            yield (
                f"Set on.assume_role.role_arn of {', '.join(names)} to {role}, and print the file of the "
                f"account of {deployed.name} again: its deployer assumes exactly what stack files name."
            )


def _administrators(made: ClientAccount) -> list[str]:
    """Access entries that clusters lack: only `on.admin_arns` reach the API server.

    The API server knows the login of the shell: for guests, that is the deployer of the large stack.
    """
    nightly = [one.name for one in made.roles("") if one.name.endswith("-nightly")]
    notes = []
    for deployed in made.place.deployed:
        spec = deployed.specs[0]
        assert isinstance(spec.on, AwsSpec)
        roles = (made.role(deployed.name), *nightly)
        host = assuming(deployed)
        account = host.on.account_id if host and isinstance(host.on, AwsSpec) else made.place.name
        wanted = [f"arn:aws:iam::{account}:role/{one}" for one in roles]
        missing = [one for one in wanted if one not in spec.on.admin_arns]
        if isinstance(spec.layout, ClusterLayout) and missing:
            notes.append(f"Add to on.admin_arns of {deployed.name}: {', '.join(missing)}")
    return notes
