"""Places that the ARN of a resource names."""

from collections.abc import Iterator

from infra.errors import Problem


def place_problems(path: str, arn: str, region: str, account: str | None = None) -> Iterator[Problem]:
    """The resource of a well-formed ARN is in a region and, where one is given, in an account.

    EBS encrypts with keys of its region (EBS user guide, "Amazon EBS encryption"). A load balancer accepts
    certificates of its own region and account alone (Elastic Load Balancing, "SSL certificates for your
    Application Load Balancer", read 2026-11-23); a secret is read in its region.
    """
    fields = arn.split(":", 5)
    if len(fields) < 6:
        return
    its_region, its_account = fields[3:5]
    if its_region != region:
        rule, fix = f"is in {its_region}, not in {region}", f"Name one in {region}."
        yield Problem(path, arn, rule, fix, code="arn-in-other-region")
    if account is not None and its_account != account:
        fix = f"Name one in account {account}."
        rule = f"is in account {its_account}, not in {account}"
        yield Problem(path, arn, rule, fix, against="on.account_id", code="arn-in-other-account")
