"""Members of a team as subjects."""

from components.kubernetes.people import asked_by, group, subjects, user
from tests.components.graph import deploy_graph


def test_groups_of_teams_are_known_by_their_beginning_however_many_there_are() -> None:
    alone = asked_by([])
    assert "startsWith('trainstack:team:')" in alone
    assert asked_by([group("trainstack:team:vision"), group("trainstack:team:research")]) == alone


def test_people_and_foreign_groups_are_known_by_name() -> None:
    said = asked_by(
        [user("eve@example.com"), user("ada@example.com"), group("ml@example.com"), user("eve@example.com")]
    )
    assert 'request.userInfo.username in ["ada@example.com", "eve@example.com"]' in said
    assert 'group in ["ml@example.com"]' in said
    # It stands beside other conditions.
    assert said.startswith("(") and said.endswith(")")


def test_a_name_cannot_end_the_expression_that_it_stands_in() -> None:
    assert r'["a\"] || true || [\"b"]' in asked_by([user('a"] || true || ["b')])


def test_a_role_is_bound_to_the_very_names() -> None:
    found = deploy_graph(
        lambda: {"of": [one.name for one in subjects([user("ada@example.com"), group("ml@example.com")])]}
    ).outputs
    assert found["of"] == ["ada@example.com", "ml@example.com"]
