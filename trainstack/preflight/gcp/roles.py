"""The custom roles that a preflight needs, as `gcloud iam roles create --file` takes them."""

from trainstack.preflight.gcp.methods import METHODS

# Permission of requests that count against a project (X-Goog-User-Project; Service Usage documentation).
_COUNT = "serviceusage.services.use"

_ABOVE = (
    ("billing.", "billing"),
    ("resourcemanager.organizations.", "organization"),
    ("resourcemanager.folders.", "organization"),
)


def rights() -> dict[str, list[str]]:
    """Every permission that a preflight needs, by the level of its grant."""
    found: dict[str, set[str]] = {"project": {_COUNT}, "billing": set(), "organization": set()}
    for method in METHODS.values():
        if method.right:
            found[next((level for start, level in _ABOVE if method.right.startswith(start)), "project")].add(
                method.right
            )
    return {level: sorted(those) for level, those in found.items()}


def role(level: str) -> str:
    """The role for the project, the billing account, or the organization."""
    lines = [f"title: Trainstack preflight, {level}", "stage: GA", "includedPermissions:"]
    return "\n".join([*lines, *(f"- {right}" for right in rights()[level])]) + "\n"
