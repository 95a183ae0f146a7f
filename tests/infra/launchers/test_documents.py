import json

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from infra.launchers import documents

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.lists(
    st.dictionaries(st.text(min_size=1), TREES, min_size=1, max_size=4), min_size=1, max_size=3
)


# PyYAML and others refuse a plain key of more than 1024 characters; escaped, this one has 1200.
LONG = "é" * 200


@example([{LONG: 1, "a": [{LONG: {LONG: [2]}, "b": "two\nlines\n"}], "c": {LONG: "two\nlines\n"}}])
@given(DOCUMENTS)
def test_what_is_written_is_read_back(values: list[dict[str, object]]) -> None:
    assert list(yaml.safe_load_all(documents.yaml(values))) == values


@given(
    st.lists(st.sampled_from(["a", " b", "", "#c", "d: e", "-", "x\t", "é", "\x07"]), min_size=1, max_size=5)
)
def test_scripts_of_several_lines_survive_to_the_letter(lines: list[str]) -> None:
    script = "\n".join(lines) + "\n"
    assert yaml.safe_load(documents.yaml([{"script": script}])) == {"script": script}


def test_words_with_a_meaning_of_their_own_are_quoted() -> None:
    awkward = [
        "yes",
        "No",
        "null",
        "1e3",
        "0x10",
        "12:30:45",
        "~",
        "",
        "2026-11-21",
        "a: b",
        "- c",
        "$(X)",
        "=",
        "<<",
    ]
    written = documents.yaml([{"words": awkward, "plain": "nvidia.com/gpu"}])
    assert yaml.safe_load(written) == {"words": awkward, "plain": "nvidia.com/gpu"}
    assert "plain: nvidia.com/gpu\n" in written


def test_json_is_readable_and_ends_with_a_newline() -> None:
    assert json.loads(documents.readable_json({"a": [1]})) == {"a": [1]}
    assert documents.readable_json({"a": 1}) == '{\n  "a": 1\n}\n'
