"""Records of Route 53."""

from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import text
from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation


@BOOK.rule_around(
    "AWS-R53-001",
    "aws:route53/record:Record",
    source="Amazon Route 53 Developer Guide, ResourceRecordTypes (CNAME); aws/aws-sdk-java issue 1996",
)
def no_alias_of_a_zone(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A CNAME is not the record of a zone itself, which has others."""
    zone = site.find(inputs.get("zoneId"), "route53/zone:Zone")
    name, kind = text(inputs.get("name")), text(inputs.get("type"))
    if zone is None or name is None or kind != "CNAME":
        return
    own = str(zone.outputs.get("name")).rstrip(".").lower()
    if name.rstrip(".").lower() in (own, ""):
        yield Violation(
            "type",
            f"RRSet of type CNAME with DNS name {own}. is not permitted at apex in zone {own}.",
            "Use a record of type A or AAAA with an alias to a resource of AWS.",
            "InvalidChangeBatch",
        )
