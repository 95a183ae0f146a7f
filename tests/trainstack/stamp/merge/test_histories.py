"""Merges over random histories of edits, judged by values that another parser reads."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trainstack.stamp.merge.edits import KINDS, START, comments, edited, values
from trainstack.stamp.merge import Conflict, MergedText, merged

Path = tuple[str, ...]
PLACES = st.integers(0, 9) | st.integers(0, 40)  # so that both sides often edit the same one
EDITS = st.lists(
    st.tuples(st.sampled_from([*sorted(KINDS), "value", "value"]), PLACES), min_size=1, max_size=6
)
HISTORIES = st.lists(st.tuples(EDITS, EDITS), min_size=1, max_size=3)


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck])
@given(HISTORIES)
def test_edits_of_the_client_stay_and_the_rest_follows_the_template(history: Any) -> None:
    base = yours = START
    for number, (by_client, by_template) in enumerate(history):
        yours = edited(yours, by_client, f"c{number}x")
        template = edited(base, by_template, f"t{number}x")
        found = merged(base, yours, template, yaml=True)
        result = resolved(found)
        judge(found, result, base, yours, template)
        again = merged(template, result, template, yaml=True)
        assert again.pieces == [result] and not again.notes
        base, yours = template, result


def resolved(found: MergedText) -> str:
    """The text with the client's side of conflicts."""
    return "".join(one.yours if isinstance(one, Conflict) else one for one in found.pieces)


def judge(found: MergedText, result: str, base: str, yours: str, template: str) -> None:
    before, own, new, after = map(values, (base, yours, template, result))
    kept = {note.key for note in found.notes if note.reason == "edited-by-you"}
    conflicts, differing = {one.key for one in found.conflicts}, set[str]()
    for path in {*before, *own, *new, *after}:
        was, mine, now = before.get(path), own.get(path), new.get(path)
        names = {named(path[:end], before | own | new) for end in range(1, len(path) + 1)}
        if mine is not None and now is not None and len({str(was), str(mine), str(now)}) == 3:
            assert names & conflicts, "both changed it"
            differing |= names
        if names & conflicts or mine != was:
            expected = mine
        elif above_removed(path, before, own):
            expected = None
        else:
            expected = mine if now is None and names & kept else now
        assert after.get(path) == expected, (path, was, mine, now)
    assert conflicts <= differing
    assert comments(yours) - comments(base) <= comments(result)


def above_removed(path: Path, before: dict[Path, Any], own: dict[Path, Any]) -> bool:
    """Whether the client removed a mapping or list above."""
    return any(path[:end] in before and path[:end] not in own for end in range(1, len(path) + 1))


def named(path: Path, kinds: dict[Path, Any]) -> str:
    """A path as notes and conflicts have it."""
    text = ""
    for end, step in enumerate(path, 1):
        if kinds.get(path[: end - 1]) == "items":
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
