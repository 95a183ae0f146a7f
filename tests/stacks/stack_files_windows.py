"""Pools of stack files that are not always open, on both clouds."""

from typing import Any

from hypothesis import strategies as st

Values = dict[str, Any]
_DAYS = st.lists(st.sampled_from(["MO", "WE", "SA", "SU"]), min_size=1, unique=True)
_CLASSES = st.lists(st.sampled_from(["production", "default", "sweep"]), min_size=1, unique=True)
HOURS = st.fixed_dictionaries(
    {
        "days": _DAYS,
        "start": st.sampled_from(["00:00", "20:00", "23:59"]),
        "hours": st.integers(1, 23),
        "classes": _CLASSES,
    }
)
TIMES = st.sampled_from(
    [
        {"starts": "2026-12-01T11:30:00Z", "ends": "2026-12-08T11:30:00Z"},
        {"starts": "2026-12-01T11:30:00+09:00", "ends": "2026-12-02T11:30:00-08:00"},
    ]
)
# What a spec refuses, or accepts where the rest fits.
WILD = {
    "layout.pools.0.hours": st.sampled_from(
        [
            None,
            {"days": ["SA"], "start": "20:00", "hours": 10, "classes": ["sweep"]},
            {"days": [], "start": "20:00", "hours": 10, "classes": ["sweep"]},
            {"days": ["SA"], "start": "25:00", "hours": 24, "classes": ["urgent"]},
        ]
    )
}


@st.composite
def windowed(draw: st.DrawFn, pools: list[Values]) -> list[Values]:
    """The pools, the first of several perhaps with hours, and with times where it is a block."""
    first, *others = pools
    if not others or not draw(st.booleans()):
        return pools
    changed = {**first, "own_queue": True}
    if draw(st.booleans()):
        changed["hours"] = draw(HOURS)
    if changed["purchase"]["kind"] == "block":
        changed |= {"purchase": {**changed["purchase"], **draw(TIMES)}, "min_nodes": 0}
    return [changed, *others]
