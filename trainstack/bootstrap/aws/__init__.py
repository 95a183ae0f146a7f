"""The deployer's roles and the state bucket of an AWS account, as CloudFormation and as Terraform."""

from trainstack.bootstrap.aws import cloudformation
from trainstack.bootstrap.aws import terraform as terraform_file
from trainstack.bootstrap.aws.account import account
from trainstack.bootstrap.stacks import Site
from trainstack.bootstrap.trust import Trust


def printed(client: str, place: Site, trust: Trust, *, terraform: bool) -> tuple[str, list[str]]:
    """The file, and notes for the reader. Raises UserError for a trust of another cloud."""
    made = account(client, place, trust)
    text = terraform_file.render(made) if terraform else cloudformation.render(made)
    uri = f"s3://{made.bucket}?region={place.region}"
    provider = f"awskms:///{made.alias}?region={place.region}"
    steps = (
        "terraform init && terraform apply"
        if terraform
        else f"aws cloudformation deploy --stack-name trainstack-{made.client} --region {place.region} "
        "--capabilities CAPABILITY_NAMED_IAM --template-file FILE"
    )
    notes = [f"The administrator of account {place.name} applies it: {steps}"]
    notes += [
        f"State: pulumi login '{uri}'; new stacks: pulumi stack init NAME --secrets-provider '{provider}'"
    ]
    if made.unbounded:
        limit = f"on.permissions_boundary: {made.roles_boundary_arn}"
        notes += [
            f"Deployers of {', '.join(made.unbounded)} can create roles with any rights. "
            f"Set `{limit}` in the stack files, then print this again."
        ]
    return text, notes
