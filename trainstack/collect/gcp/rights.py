"""Section of docs/how-to/live.md on Google Cloud, with the roles of a collector."""

from policies.sources.live.tables import tables

_GOOGLE = """## Google Cloud

    trainstack collect --live gcp --project PROJECT --out snapshot.json

Cloud Asset Inventory reports the resources of a project, in all regions and at one time, which the snapshot
contains. Resources that it does not have (budgets, HMAC keys, Parallelstore, policies and log sinks of the
folders and the organization) are read from their own APIs. Credentials are the application default ones.
Those of a user need a quota project (`gcloud auth application-default set-quota-project PROJECT`), and
`serviceusage.services.use` there. The project needs the APIs `cloudasset.googleapis.com` and
`cloudresourcemanager.googleapis.com`, for budgets also `cloudbilling.googleapis.com` and
`billingbudgets.googleapis.com`.

- **Asset Inventory lags.** Most changes show within minutes; those of log buckets, sinks and Cloud SQL may
  take seven hours, and those of service accounts and their keys seven days.
- **A project without any answer** (API disabled, no access, everything throttled) is an error, not an empty
  snapshot. If one type fails or is incomplete, only rules that depend on it are undetermined.
- **Excluded**, because they cannot be changed: log buckets and sinks called `_Required`, keys of service
  accounts that Google created, keys of KMS whose primary version is destroyed, node pools of Autopilot.
- **The default network** and its firewall rules are reported as any other.
- A member of a role is reported as part of a binding. Regional disks and regional secrets are not reported.
- Resources of other folders and projects are not reported.
- **Unmanaged** resources have the label `trainstack-stack` (a label cannot be called `trainstack:stack`).
  Resources without labels, such as networks, IAM policies and firewall rules, are never reported as
  unmanaged.

Untested in a real project: no emulation of Asset Inventory exists. Queries and fields are tested with the
discovery documents of Google's APIs, properties with the SDK, and verdicts with recorded states in these
formats. The formats of Asset Inventory and its permissions are taken from its documentation.

These are all permissions that are needed. The first role is for the project:

```yaml
"""
_ABOVE = """```

One for the organization and the folders of the project; without these, rules about permissions and log sinks
are undetermined:

```yaml
"""
_BILLING = """```

One for the billing account, also part of `roles/billing.viewer`; without it rules about budgets are
undetermined:

```yaml
"""


def rights() -> dict[str, list[str]]:
    """Every permission that a collector needs of Google Cloud, by where it is granted."""
    found: dict[str, set[str]] = {"project": set(), "above": set(), "billing": set()}
    for one in tables("gcp").queries.values():
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
    lines = [f"title: {title}", "stage: GA", "includedPermissions:", *(f"- {right}" for right in rights)]
    return "\n".join(lines) + "\n"


def section() -> str:
    """The section of docs/how-to/live.md."""
    needed = rights()
    roles = [_role(f"Trainstack audit, {level}", needed[level]) for level in ("project", "above", "billing")]
    return f"{_GOOGLE}{roles[0]}{_ABOVE}{roles[1]}{_BILLING}{roles[2]}```\n"
