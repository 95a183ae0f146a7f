"""The page about policies is the catalogue."""

from policies.documentation import FILE, document


def test_the_page_is_current() -> None:
    assert FILE.read_text() == document(), "python -m policies.documentation"
