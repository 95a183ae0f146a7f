"""Write docs/how-to/live.md, with the rights of a collector: `python -m trainstack.collect.documentation`."""

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

`trainstack collect` asks an AWS account what it has in a region, a project of [Google Cloud](#google-cloud)
what it has anywhere, or a [cluster](#kubernetes), and writes the answers down. `trainstack audit` judges them
by the same rules as a state.

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
this tells, without counting it in the exit code, in every form of the report (of SARIF in `properties` of the
run, of JUnit in a suite without a case):

- **missing**: in the state, and not in the account, of what the account could tell.
- **drifted**: a property that the program asked for is otherwise in the account. Sizes that autoscalers move,
  tags and user data are not compared.
- **unmanaged**: tagged as of the stack (`trainstack:stack`; on Google Cloud labelled `trainstack-stack`), and
  not in its state. What services and controllers make for others is left out. `pulumi import --file
  import.json` takes the file.

## What an account cannot tell

- **Refused is not absent.** Where an operation was refused, every rule that depends on there being none, or
  no other, is undetermined and names the right that was missing. Throttled requests are repeated first.
- **What only a program has** (`protect`, `forceDestroy`, `skipFinalSnapshot`) is unknown, so rules that need
  it are undetermined. Rules about what a program asked for, such as pinned versions, are not applicable.
- **What is in a cluster** is not told: rules about objects of Kubernetes are not applicable, and others that
  look for some are undetermined. Audit the state for these, or [the cluster](#kubernetes).
- A launch template is judged by its latest version, as in a state. A version that nodes of EKS have and that
  is no more the latest is judged as well, and they by it. What other Auto Scaling groups start is not asked.
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


def rights() -> list[str]:
    """Every action that a collector needs of AWS. Who asks need not be allowed to ask who that is."""
    service = functools.cache(botocore.session.get_session().get_service_model)
    return sorted({right_of(one, service(one.service)) for one in tables("aws").questions.values()})


def document() -> str:
    """The content of the file."""
    statement = {"Sid": "TrainstackAudit", "Effect": "Allow", "Action": rights(), "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]}, indent=2)
    return f"{_HEAD}\n{_RIGHTS}{policy}\n```\n\n{google_rights.section()}\n{cluster_rights.section()}"


if __name__ == "__main__":
    FILE.write_text(document())
