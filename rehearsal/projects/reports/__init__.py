"""Reports of the rehearsal of a project: text, JSON, JUnit and HTML, from one record."""

from typing import Literal

Form = Literal["text", "json", "junit", "html"]
