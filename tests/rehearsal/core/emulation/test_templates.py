"""Templates of ids and outputs, filled in each after those that it uses."""

import pytest

from rehearsal.core.emulation.shape import fill_in
from rehearsal.core.emulation.table import Row
from rehearsal.core.emulation.templates import expand
from rehearsal.core.model import Properties


def test_generated_values_derive_from_seed_and_label() -> None:
    one, other, again = (expand("{hex17:a}-{hex17:b}-{hex17:a}", seed, {}) for seed in ("s", "t", "s"))
    assert one == again != other
    first, second, third = one.split("-")
    assert first == third != second and len(first) == 17


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{leaf:path}/{path}", "c/a/b/c"),
        ("{host:url}", "example.com/x"),
        ("{first:range}", "10.0.0.1"),
        ("{absent}", ""),
        (["{path}", {"k": "{n}"}, 3], ["a/b/c", {"k": "7"}, 3]),
    ],
)
def test_placeholders_are_properties_or_parts_of_them(template: object, text: object) -> None:
    values = {"path": "a/b/c", "url": "https://example.com/x", "range": "10.0.0.0/24", "n": 7}
    assert expand(template, "seed", values) == text


def test_a_template_that_is_a_number_gives_one() -> None:
    assert isinstance(expand("{int16}", "seed", {}), int)


def test_an_output_may_use_the_id_the_link_and_other_outputs() -> None:
    row = Row(
        "p:t", "{arn}", link="arn:{name}:{drawn}", outputs={"drawn": "{hex4}", "more": {"of": "{id}-{given}"}}
    )
    outputs: Properties = {"name": "n", "given": "g"}
    made = fill_in(row, "arn", "seed", outputs, {})
    assert made == outputs["arn"] == f"arn:n:{outputs['drawn']}"
    assert outputs["more"] == {"of": f"{made}-g"}


def test_templates_that_use_each_other_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"p:t: .* a, b "):
        fill_in(Row("p:t", "x", outputs={"a": "{b}", "b": "{a}"}), "arn", "seed", {}, {})
