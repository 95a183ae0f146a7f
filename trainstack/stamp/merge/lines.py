"""Lines of a text, ended by line feeds alone."""


def lines(text: str) -> list[str]:
    """The lines with their ends; the last one may have none."""
    return [one for one in text.replace("\n", "\n\0").split("\0") if one] if "\0" not in text else [text]


def ended(text: str) -> str:
    """The text with a line feed at its end, unless it is empty."""
    return text if not text or text.endswith("\n") else f"{text}\n"
