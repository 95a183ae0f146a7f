"""What docs/how-to/live.md says of Google Cloud, with the roles that a collector needs."""

from policies.sources.live.tables import tables

_GOOGLE = """## Google Cloud

    trainstack collect --live gcp --project PROJECT --out snapshot.json

Cloud Asset Inventory tells what is in a project, in all regions and at one moment: the snapshot says which.
What it does not hold (budgets, HMAC keys, Parallelstore, policies and log sinks of the folders and the
organization above) is asked of its own API. Credentials are the application default ones. Those of a user
need a project that is billed (`gcloud auth application-default set-quota-project PROJECT`), and
`serviceusage.services.use` there. The project needs the APIs `cloudasset.googleapis.com` and
`cloudresourcemanager.googleapis.com`, for budgets also `cloudbilling.googleapis.com` and
`billingbudgets.googleapis.com`.

- **Asset Inventory lags.** Most changes show within minutes; those of log buckets, sinks and Cloud SQL may
  take seven hours, and those of service accounts and their keys seven days.
- **A project that answers nothing** (its API is off, it is not told of, all is throttled) is an error, not an
  empty snapshot. One type that is refused or answered in part leaves open only what depends on it.
- **Left out**, because nobody can change them: log buckets and sinks called `_Required`, keys of service
  accounts that Google made, keys of KMS whose primary version is destroyed, node pools of Autopilot.
- **The default network** and its firewall rules are told as any other.
- A member of a role is told as part of a binding. Regional disks and regional secrets are not told.
- What other folders and projects have is not told.
- **Unmanaged** is what bears the label `trainstack-stack` (a label cannot be called `trainstack:stack`). What
  has no labels, such as networks, rights, and rules of firewalls, is never told as unmanaged.

Untested in a real project: no emulation of Asset Inventory exists. Questions and fields are held against the
discovery documents of Google's APIs, properties against the SDK, and verdicts against recorded states that
are told in these forms. That Asset Inventory answers in them, and which rights it asks for, is read in its
documentation.

These are all rights that are asked for. The first role is for the project:

```yaml
"""
_ABOVE = """```

One of the organization, for it and the folders that the project is in; without these, rules about who may do
what, and where logs go, are undetermined:

```yaml
"""
_BILLING = """```

One for the billing account, where `roles/billing.viewer` has it, too; without it rules about budgets are
undetermined:

```yaml
"""


def rights() -> dict[str, list[str]]:
    """Every permission that a collector needs of Google Cloud, by where it is granted."""
    found: dict[str, set[str]] = {"project": set(), "above": set(), "billing": set()}
    for one in tables("gcp").questions.values():
        level = (
            "billing"
            if one.right.startswith("billing.")
            else "above"
            if "getAncestry" in one.of
            else "project"
        )
        found[level].add(one.right)
    return {level: sorted(those) for level, those in found.items()}


def _role(title: str, rights: list[str]) -> str:
    """As `gcloud iam roles create --file` takes it."""
    lines = [f"title: {title}", "stage: GA", "includedPermissions:", *(f"- {right}" for right in rights)]
    return "\n".join(lines) + "\n"


def section() -> str:
    """The part of docs/how-to/live.md."""
    needed = rights()
    roles = [_role(f"Trainstack audit, {level}", needed[level]) for level in ("project", "above", "billing")]
    return f"{_GOOGLE}{roles[0]}{_ABOVE}{roles[1]}{_BILLING}{roles[2]}```\n"
