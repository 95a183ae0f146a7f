"""Checks of versions, upgrades, money and people on Google Cloud: pure functions of plain values."""

from infra.catalog.gcp import access, facts
from infra.catalog.gcp.gke import maintenance_problems
from tests.infra.catalog.problems import said


def test_a_version_is_of_the_channel() -> None:
    def check(version: str, channel: str = "regular") -> str:
        return said(facts.gke.version_problems("version", version, "channel", channel))

    assert check("1.35") == check("1.31", "extended") == ""
    assert "1.30, 1.31" in check("1.99")
    assert "version-not-in-channel" in check("1.36", "stable")
    assert check("1.31")


def test_upgrades_have_time() -> None:
    def check(hours: int, *days: str) -> str:
        return said(maintenance_problems("days", days, "hours", hours))

    assert check(6, "SA", "SU") == check(12, "SA") == ""
    assert "maintenance-too-short" in check(5, "SA", "SU")
    assert "Set 6 hours" in check(5, "SA", "SU") and "Set 48 hours" in check(24)
    assert "day-named-twice" in check(12, "SA", "SA")


def test_people_administer_or_work_in_a_team() -> None:
    admins = ["user:Ada@example.com", "serviceAccount:d@p-1.iam.gserviceaccount.com"]
    assert said(access.admin_problems("admins", admins)) == ""
    assert "principal-named-twice" in said(
        access.admin_problems("admins", ["user:a@example.com", "user:A@example.com"])
    )
    assert "admins[0]" in said(access.admin_problems("admins", ["ada@example.com"]))
    assert said(access.admin_problems("admins", []))

    def members(*names: str) -> str:
        found = access.apart_problems("members", names, "admins", admins)
        return said([*access.member_problems("members", names), *found])

    assert members("user:bob@example.com", "group:team@example.com") == ""
    assert "member-is-administrator" in members("user:ada@example.com")  # the same account in another case
    assert "members[0]" in members("serviceAccount:x@p-1.iam.gserviceaccount.com")
    assert "members[0]" in members("arn:aws:iam::123456789012:user/ada")
    assert "invalid-member" in members("user:Bob@example.com")  # RBAC compares the case
