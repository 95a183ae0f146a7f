"""An answer as people and programs read it."""

import datetime
import json

from trainstack.advice import Question, advise
from trainstack.advice.report import document, fields

FOUND = advise(Question(7e9, 1e9, "lora"))


def test_an_old_price_is_marked_beside_the_sum() -> None:
    assert FOUND.best
    day = FOUND.best.price.source.date
    fresh, old = (
        next(text for name, text in fields(FOUND, on) if name == "best") for on in (day, datetime.date.max)
    )
    assert "old price" not in fresh
    assert f"old price of {day}" in old


def test_more_expensive_machines_have_their_ratio_of_price() -> None:
    assert FOUND.best
    dearer = [text for name, text in fields(FOUND, datetime.date.min) if name == "more expensive"]
    ratios = [float(line.rsplit(": ", 1)[1].split()[0]) for line in dearer]
    assert len(ratios) == len(FOUND.others) > 3
    assert ratios == sorted(ratios) and ratios[0] >= 1


def test_the_document_is_plain_and_has_what_the_sum_is_made_of() -> None:
    best = json.loads(json.dumps(document(FOUND)))["best"]
    assert best["usd"] == best["hours"] * best["count"] * best["price"]["usd"]
    assert best["price"]["source"]["source"]
