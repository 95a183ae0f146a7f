"""Cloud SQL tiers and alarm addresses, against examples of the documentation."""

import pytest

from infra.catalog.gcp.database import tier_problems


@pytest.mark.parametrize(
    "tier", ["db-custom-1-3840", "db-custom-2-7680", "db-custom-2-13312", "db-custom-96-638976"]
)
def test_tiers_that_the_documentation_shows_can_be_made(tier: str) -> None:
    assert [*tier_problems("tier", tier)] == []


@pytest.mark.parametrize(
    ("tier", "code"),
    [
        ("db-f1-micro", "invalid-database-tier"),
        ("db-custom-1-3839", "database-memory-not-offered"),
        ("db-custom-2-7681", "database-memory-not-offered"),
        ("db-custom-5-10240", "database-processors-not-offered"),
        ("db-custom-98-638976", "database-processors-not-offered"),
        ("db-custom-1-13312", "database-memory-not-offered"),
        ("db-custom-96-3840", "database-memory-not-offered"),
    ],
)
def test_invalid_tiers_are_refused(tier: str, code: str) -> None:
    (problem,) = tier_problems("on.database.tier", tier)
    assert (problem.code, problem.path) == (code, "on.database.tier")
