"""The account of AWS and the projects of Google Cloud in a rehearsal."""

from rehearsal.core.emulation.templates import digits

# The account of a rehearsal, unless a provider assumes a role or demands an account.
ACCOUNT = "123456789012"


def project_number(project: str) -> str:
    """The number of a project, derived from its id."""
    return digits(f"project {project}", 12)
