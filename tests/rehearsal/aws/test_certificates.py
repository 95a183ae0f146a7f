"""Certificates, the records that validate them, and hosted zones."""

import re
from typing import Any

from rehearsal.core.model import UNKNOWN
from tests.rehearsal.aws.harness import Driver

CERTIFICATE = "acm/certificate:Certificate"


def options(made: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {one["domainName"]: one for one in made["domainValidationOptions"]}


def test_each_name_of_a_certificate_has_a_record_that_validates_it(aws: Driver) -> None:
    names = ["*.shop.test", "mail.test"]
    made = aws.create(CERTIFICATE, "site", domainName="shop.test", subjectAlternativeNames=names)
    found = options(made)
    assert set(found) == {"shop.test", *names}
    one = found["shop.test"]
    assert re.fullmatch(r"_[0-9a-f]{32}\.shop\.test\.", one["resourceRecordName"])
    assert one["resourceRecordType"] == "CNAME"
    assert re.fullmatch(r"_[0-9a-f]{32}\.\w{10}\.acm-validations\.aws\.", one["resourceRecordValue"])
    assert {**found["*.shop.test"], "domainName": ""} == {**one, "domainName": ""}
    assert found["mail.test"]["resourceRecordValue"] != one["resourceRecordValue"]
    zone = aws.create("route53/zone:Zone", "zone", name="shop.test")
    record = aws.create(
        "route53/record:Record",
        "proof",
        zoneId=zone["id"],
        name=one["resourceRecordName"],
        type=one["resourceRecordType"],
        records=[one["resourceRecordValue"]],
        ttl=60,
    )
    proof = [record["fqdn"]]
    given = {"certificateArn": made["arn"], "validationRecordFqdns": proof}
    assert aws.create("acm/certificateValidation:CertificateValidation", "valid", **given)["id"]
    assert aws.update("site", domainName="shop.test", subjectAlternativeNames=names, tags={"a": "b"})
    assert options(aws.made["site"][3]) == found == options(aws.refresh("site") or {})


def test_certificates_that_no_record_validates_have_none(aws: Driver) -> None:
    posted = aws.create(CERTIFICATE, "post", domainName="shop.test", validationMethod="EMAIL")
    assert posted["domainValidationOptions"] == []
    assert "admin@shop.test" in posted["validationEmails"]
    own = aws.create(CERTIFICATE, "own", certificateBody="body", privateKey="key")
    assert own["domainValidationOptions"] == []


def test_the_records_are_not_known_in_a_preview(aws: Driver) -> None:
    made = aws.create(CERTIFICATE, "site", preview=True, domainName="shop.test")
    assert made["domainValidationOptions"] is UNKNOWN


def test_a_hosted_zone_is_known_by_its_id(aws: Driver) -> None:
    zone = aws.create("route53/zone:Zone", "zone", name="shop.test")
    assert re.fullmatch(r"Z[A-Z0-9]+", zone["id"]) and zone["id"] == zone["zoneId"]
    assert zone["arn"] == f"arn:aws:route53:::hostedzone/{zone['id']}"
    assert len(zone["nameServers"]) == 4
