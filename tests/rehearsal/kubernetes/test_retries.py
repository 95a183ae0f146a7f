"""Retries of creates: for a missing namespace or kind, ten times as fast as the provider's."""

import threading
import time

import pytest

from rehearsal.core.model import RefusalError
from tests.rehearsal.kubernetes.harness import CONFIG_MAP, Rehearsed

INPUTS = {"metadata": {"name": "c", "namespace": "lab"}}


def tries(rehearsed: Rehearsed) -> list[str]:
    return [text for severity, text in rehearsed.log if severity == "status" and text.startswith("Retry #")]


def test_a_namespace_that_appears_in_time_is_found(rehearsed: Rehearsed) -> None:
    threading.Timer(0.9, rehearsed.namespace).start()
    assert rehearsed.create(CONFIG_MAP, INPUTS, "c")[0] == "lab/c"
    assert tries(rehearsed)[:4] == [
        f'Retry #{number}; creation failed: namespaces "lab" not found.' for number in range(4)
    ]


def test_a_missing_namespace_or_kind_is_asked_for_six_times_in_31_s(rehearsed: Rehearsed) -> None:
    for token, said in (
        (CONFIG_MAP, "not found"),
        ("kubernetes:example.com/v1:Thing", "no matches for kind"),
    ):
        rehearsed.log.clear()
        began = time.monotonic()
        with pytest.raises(RefusalError, match=said):
            rehearsed.create(token, INPUTS, "c")
        assert 3.1 <= time.monotonic() - began < 6
        assert len(tries(rehearsed)) == 5


def test_other_errors_are_not_retried(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    rehearsed.create(CONFIG_MAP, INPUTS, "c")
    with pytest.raises(RefusalError, match="already exists"):
        rehearsed.create(CONFIG_MAP, INPUTS, "other")
    assert tries(rehearsed) == []
