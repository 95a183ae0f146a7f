"""Write docs/how-to/live.md with permissions of collectors: `python -m trainstack.collect.documentation`."""

import functools
import json
from pathlib import Path

import botocore.session

from policies.sources.live.tables import tables
from trainstack.collect import cluster_rights
from trainstack.collect.aws.account import right_of
from trainstack.collect.gcp import rights as google_rights

FILE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "live.md"
_HEAD = """# Audit of an account

<!-- Written by `python -m trainstack.collect.documentation`; a test compares it with the requests. -->

`trainstack collect` reads the resources of an AWS account in a region, of a project of
[Google Cloud](#google-cloud) in all regions, or of a [cluster](#kubernetes), and writes a snapshot.
`trainstack audit` judges it by the same rules as a state.

    trainstack collect --live aws --region us-east-1 --out snapshot.json
    trainstack audit --snapshot snapshot.json

    trainstack audit --live aws --region us-east-1     # both at once
    trainstack audit --live gcp --project PROJECT

Credentials are those of the environment. All requests are read-only. A snapshot is a JSON file
(`trainstack.snapshot/1`) with mode 0600: the answers of each API operation, and its errors. It contains no
secrets: values of secrets are not read, user data of machines is reduced to whether it sets taints, settings
of EKS add-ons lose values that are named like secrets, and instance metadata of Google Cloud and annotations
lose all values. It contains names, addresses of subscribers, and policies.

## An account against its state

    trainstack audit --state state.json --snapshot snapshot.json --import-file import.json

The account is judged, with data that only the state has: URNs, `protect`, inputs of the program. Every report
also lists differences, which do not count in the exit code (in SARIF in `properties` of the run, in JUnit in
a suite without a case):

- **missing**: in the state, but not in the account, although the account reports such resources.
- **drifted**: a property has another value in the account than in the program. Sizes that autoscalers change,
  tags and user data are not compared.
- **unmanaged**: tagged with the stack (`trainstack:stack`; on Google Cloud labelled `trainstack-stack`), but
  not in its state. Resources that services and controllers create are excluded. `pulumi import --file
  import.json` accepts the file.

## Limits of an account

- **An error is not an absence.** If an operation failed, every rule that depends on the absence of resources
  is undetermined and names the missing permission. Throttled requests are retried first.
- **Properties that only a program has** (`protect`, `forceDestroy`, `skipFinalSnapshot`) are unknown, so
  rules that need them are undetermined. Rules about inputs, such as pinned versions, are not applicable.
- **Objects of a cluster** are not reported: rules about objects of Kubernetes are not applicable, and others
  that need some are undetermined. Audit the state for these, or [the cluster](#kubernetes).
- A launch template is judged by its latest version, as in a state. An older version that nodes of EKS run is
  judged as well. Versions of other Auto Scaling groups are not read.
- Service-linked roles, copies of launch templates by EKS, and keys that AWS owns are excluded.
- A snapshot covers one region. Resources without a region (IAM, budgets, cost anomalies) are in each.

Untested in a real account: queries, answers and permissions are tested with the service models of botocore,
an emulation, and AWS managed policies.
"""
_RIGHTS = """## Permissions

This AWS policy has exactly the required permissions. Without some of them, the rest is still reported.

```json
"""


@functools.cache
def rights() -> tuple[str, ...]:
    """All IAM actions of a collector. `sts:GetCallerIdentity` needs no permission."""
    service = functools.cache(botocore.session.get_session().get_service_model)
    return tuple(sorted({right_of(one, service(one.service)) for one in tables("aws").queries.values()}))


def document() -> str:
    """The content of the file."""
    statement = {"Sid": "TrainstackAudit", "Effect": "Allow", "Action": rights(), "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]}, indent=2)
    return f"{_HEAD}\n{_RIGHTS}{policy}\n```\n\n{google_rights.section()}\n{cluster_rights.section()}"


if __name__ == "__main__":
    FILE.write_text(document())
