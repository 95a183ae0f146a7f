"""Writes docs/live.md, with the rights that a collector needs: `python -m infra.collect.documentation`."""

import functools
import json
from pathlib import Path

import botocore.session

from infra.collect.aws import right_of
from policies.sources.live.tables import tables

FILE = Path(__file__).resolve().parents[2] / "docs" / "live.md"
_HEAD = """# Audit of an account

<!-- Written by `python -m infra.collect.documentation`; a test holds it against what a collector asks. -->

`trainstack collect` asks an AWS account what it has in a region, or a project of
[Google Cloud](#google-cloud) what it has anywhere, and writes the answers down. `trainstack audit` judges
them by the same rules as a state.

    trainstack collect --live aws --region us-east-1 --out snapshot.json
    trainstack audit --snapshot snapshot.json

    trainstack audit --live aws --region us-east-1     # both at once
    trainstack audit --live gcp --project PROJECT

Credentials are those of the environment. Nothing is changed. A snapshot is a JSON file
(`trainstack.snapshot/1`) for its owner alone (mode 0600): what each operation of the API answered, and which
were refused. It has no secrets: values of secrets are not asked for, user data of machines is reduced to
whether it sets taints, settings of EKS add-ons lose values that are named like secrets, and metadata of
machines of Google Cloud and annotations lose all of theirs. Names, addresses of subscribers and policies are
in it.

## An account against its state

    trainstack audit --state state.json --snapshot snapshot.json --import-file import.json

The account is judged, with what only the state knows: URNs, `protect`, what the program asked for. Besides,
this tells, without counting it in the exit code:

- **missing**: in the state, and not in the account, of what the account could tell.
- **drifted**: a property that the program asked for is otherwise in the account. Sizes that autoscalers move,
  tags and user data are not compared.
- **unmanaged**: tagged as of the stack (`trainstack:stack`), and not in its state. What services and
  controllers make for others is left out. `pulumi import --file import.json` takes the file.

## What an account cannot tell

- **Refused is not absent.** Where an operation was refused, every rule that depends on there being none, or
  no other, is undetermined and names the right that was missing. Throttled requests are repeated first.
- **What only a program has** (`protect`, `forceDestroy`, `skipFinalSnapshot`) is unknown, so rules that need
  it are undetermined. Rules about what a program asked for, such as pinned versions, are not applicable.
- **What is in a cluster** is not told: rules about objects of Kubernetes are not applicable, and others that
  look for some are undetermined. Audit the state for these.
- A launch template is judged by its latest version, as in a state.
- Service-linked roles, copies of launch templates that EKS makes, and keys that AWS owns are left out.
- One snapshot is of one region. What has no region (IAM, budgets, anomalies of cost) is in each.

Untested in a real account: questions, answers and rights are held against the service models of botocore, an
emulation, and policies that AWS manages.
"""
_RIGHTS = """## Rights

This policy of AWS allows everything that is asked, and nothing else. Without a part of it the rest is still
told.

```json
"""
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


def google_rights() -> dict[str, list[str]]:
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
    return {level: sorted(rights) for level, rights in found.items()}


def _role(title: str, rights: list[str]) -> str:
    """As `gcloud iam roles create --file` takes it."""
    lines = [f"title: {title}", "stage: GA", "includedPermissions:", *(f"- {right}" for right in rights)]
    return "\n".join(lines) + "\n"


def _google() -> str:
    rights = google_rights()
    roles = [_role(f"Trainstack audit, {level}", rights[level]) for level in ("project", "above", "billing")]
    return f"{_GOOGLE}{roles[0]}{_ABOVE}{roles[1]}{_BILLING}{roles[2]}```\n"


def rights() -> list[str]:
    """Every action that a collector needs of AWS. Who asks need not be allowed to ask who that is."""
    service = functools.cache(botocore.session.get_session().get_service_model)
    return sorted({right_of(one, service(one.service)) for one in tables("aws").questions.values()})


def document() -> str:
    """The content of the file."""
    statement = {"Sid": "TrainstackAudit", "Effect": "Allow", "Action": rights(), "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]}, indent=2)
    return f"{_HEAD}\n{_RIGHTS}{policy}\n```\n\n{_google()}"


if __name__ == "__main__":
    FILE.write_text(document())
