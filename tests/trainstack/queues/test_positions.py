"""Places in a queue: Kueue's own, else by priority and age."""

from tests.trainstack.queues.samples import NOW, job, running, state
from trainstack.queues.positions import Place, places

OLD, YOUNG, URGENT = job("old"), job("young", created=NOW), job("urgent", created=NOW, priority=1000)


def test_kueue_is_believed() -> None:
    known = {OLD.key: 2, YOUNG.key: 0, URGENT.key: 1}
    found = places(state([OLD, YOUNG, URGENT], places=known))
    assert found == {key: Place(place + 1, reported=True) for key, place in known.items()}


def test_without_its_word_priority_decides_then_age() -> None:
    found = places(state([YOUNG, OLD, URGENT, running("a"), job("theirs", "blue")]))
    assert {name: place.number for (_, name), place in found.items()} == {
        "job-urgent": 1, "job-old": 2, "job-young": 3, "job-theirs": 1,
    }  # fmt: skip
    assert not any(place.reported for place in found.values())
