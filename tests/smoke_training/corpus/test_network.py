"""Every network of the corpus gets its verdict, by the check that should decide."""

from dataclasses import replace

import pytest

from smoke_training.model import Verdict
from tests.smoke_training.corpus.clusters import check_of, judged
from tests.smoke_training.corpus.degraded import DEGRADED
from tests.smoke_training.corpus.network import HEALTHY, WITHOUT_REFERENCE, Row

ROWS = (*HEALTHY, *WITHOUT_REFERENCE, *DEGRADED)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_network_gets_its_verdict(row: Row) -> None:
    found = judged(row.cluster)
    reasons = {
        check.id: check.message
        for check in found.checks
        if check.required and check.status is not Verdict.PASS
    }
    assert found.verdict is row.verdict, reasons
    if row.check:
        check = check_of(found, row.check)
        assert check.status is row.verdict, reasons
        said = [check.message, *(text for culprit in check.culprits for text in culprit.evidence)]
        assert any(row.says in text for text in said), said
        assert check.next_action


def test_the_corpus_has_both_kinds_and_each_only_once() -> None:
    assert len(HEALTHY) + len(WITHOUT_REFERENCE) >= 20 and len(DEGRADED) >= 20
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(bool(row.why) is (row.verdict is Verdict.INCONCLUSIVE) for row in DEGRADED)


def test_releases_that_name_no_algorithm_are_held_against_switches_that_reduce() -> None:
    sharp = next(row.cluster for row in ROWS if row.cluster.algorithm == "collnet_direct")
    named, unnamed, without = (
        check_of(judged(cluster), "collective.all_reduce").expected
        for cluster in (sharp, replace(sharp, algorithm=None), replace(sharp, algorithm=None, log={}))
    )
    assert named is not None and unnamed is not None and without is not None
    assert named.value == unnamed.value != without.value
