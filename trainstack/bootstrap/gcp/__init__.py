"""The deployer's service accounts and the state bucket of a project, as a gcloud script and as Terraform."""

from trainstack.bootstrap.gcp import gcloud
from trainstack.bootstrap.gcp import terraform as terraform_file
from trainstack.bootstrap.gcp.project import project
from trainstack.bootstrap.stacks import Site
from trainstack.bootstrap.trust import Trust


def printed(client: str, place: Site, trust: Trust, *, terraform: bool) -> tuple[str, list[str]]:
    """The file, and notes for the reader. Raises UserError for a trust of another cloud."""
    made = project(client, place, trust)
    text = terraform_file.render(made) if terraform else gcloud.render(made)
    steps = "terraform init && terraform apply" if terraform else "sh FILE"
    return text, [
        f"The administrator of project {place.name} applies it: {steps}",
        f"State: pulumi login gs://{made.bucket}; new stacks: pulumi stack init NAME "
        f"--secrets-provider 'gcpkms://{made.key}'",
    ]
