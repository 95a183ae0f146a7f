"""Merges of YAML by key: cases that random histories do not reach."""

import pytest

from trainstack.stamp.merge import Labels, merged

SHIPPED = """\
config:
  trainstack:spec:
    teams:
      - name: vision # ours
        quota: 4
        members: [ada, bob]
    budget:
      monthly_usd: 1000
"""


def text(base: str, yours: str, template: str) -> str:
    found = merged(base, yours, template, yaml=True)
    assert not found.conflicts
    return found.text(Labels())


def test_another_style_of_the_client_is_no_edit_of_values() -> None:
    base, template = "a: {x: 1, y: 2}\nb: [1, 2]\nc: text\n", "a: {x: 1, y: 3}\nb: [1, 3]\nc: other\n"
    yours = "a:\n  x: 1\n  y: 2\nb:\n- 1\n- 2\nc: 'text'\n"
    assert text(base, yours, template) == template


def test_a_list_that_only_the_client_indents_gets_items_at_its_columns() -> None:
    base = "pools:\n- name: a\n  n: 1\n"
    yours = "pools:\n    - name: a\n      n: 5\n"
    template = base + "- name: b\n  n: 2\n"
    assert text(base, yours, template) == yours + "    - name: b\n      n: 2\n"


def test_both_edit_a_mapping_on_one_line() -> None:
    assert text("a: {x: 1, y: 2} # c\n", "a: {x: 9, y: 2} # c\n", "a: {x: 1, y: 3, z: 4} # d\n") == (
        "a: {x: 9, y: 3, z: 4} # d\n"
    )


def test_lines_of_a_script_are_merged() -> None:
    base = "run: |\n  one\n  two\n  three\n  four\n  five\n"
    merge = text(base, base.replace("one", "uno"), base.replace("five", "cinque"))
    assert merge == base.replace("one", "uno").replace("five", "cinque")


def test_comments_after_the_last_item_stay_in_their_list() -> None:
    yours = SHIPPED.replace("    budget:", "      # - name: speech\n    budget:")
    template = SHIPPED.replace("    budget:", "      - name: robots\n        quota: 1\n    budget:")
    found = text(SHIPPED, yours, template)
    assert "# - name: speech" in found and "robots" in found


def test_an_item_whose_first_key_goes_keeps_its_dash() -> None:
    base = "pools:\n  - machine: m\n    name: a\n    n: 1\n"
    assert text(base, base.replace("n: 1", "n: 5"), base.replace("machine: m\n    ", "")) == (
        "pools:\n  - name: a\n    n: 5\n"
    )


def test_a_conflict_shows_three_versions_and_both_places() -> None:
    yours = SHIPPED.replace("1000", "2000 # agreed")
    found = merged(SHIPPED, yours, "# head\n" + SHIPPED.replace("1000", "3000"), yaml=True)
    (conflict,) = found.conflicts
    assert conflict.key == "config.trainstack:spec.budget.monthly_usd"
    assert (conflict.line, conflict.template_line) == (8, 9)
    assert found.text(Labels("you", "0.1.0", "0.2.0")).endswith(
        "<<<<<<< you\n      monthly_usd: 2000 # agreed\n||||||| 0.1.0\n      monthly_usd: 1000\n"
        "=======\n      monthly_usd: 3000\n>>>>>>> 0.2.0\n"
    )


def test_what_pulumi_writes_into_a_stack_file_stays() -> None:
    yours = f"encryptionsalt: v1:abc\n{SHIPPED}  aws:region: eu-west-1\n  acme:token:\n    secure: v1:xyz\n"
    found = text(SHIPPED, yours, SHIPPED.replace("1000", "3000"))
    assert found == yours.replace("1000", "3000")


def test_a_removed_key_is_named_only_where_the_template_changed_it() -> None:
    base = "a: 1\nb: 1\nc: 1\n"
    found = merged(base, "c: 1\n", "a: 2\nb: 1\nc: 2\n", yaml=True)
    assert [(note.key, note.reason) for note in found.notes] == [("a", "removed-by-you")]
    assert found.text(Labels()) == "c: 2\n"


@pytest.mark.parametrize("extra", ["x: &a 1\ny: *a\n", "---\nx: 1\n", "x: !ref [a, b]\n", "- 1\n- 2\n"])
def test_forms_without_keys_are_merged_by_lines(extra: str) -> None:
    base = extra + "\n".join(f"# {number}" for number in range(9)) + "\n"
    yours, template = base.replace("# 0", "# zero"), base.replace("# 8", "# eight")
    assert text(base, yours, template) == yours.replace("# 8", "# eight")


def test_a_merge_of_lines_that_is_no_yaml_is_a_conflict() -> None:
    base = "x: &a 1\n\n\n\n\n"
    found = merged(base, "k: 1\n" + base, base + "k: 2\n", yaml=True)
    assert len(found.conflicts) == 1
