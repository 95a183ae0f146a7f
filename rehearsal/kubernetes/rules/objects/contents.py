"""Contents of ConfigMaps and Secrets."""

import base64
import binascii
import re
from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules.accessors import mapping, text
from rehearsal.kubernetes.rules.book import BOOK, CONFIG_MAP, CORE, SECRET
from rehearsal.kubernetes.rules.violations import invalid

_KEY = re.compile(r"(?!\.$|\.\.)[-._a-zA-Z0-9]{1,253}")
_GO = "golang.org/pkg/encoding/json: bytes are written in standard base64"


@BOOK.rule("K8S-DATA-001", CONFIG_MAP, SECRET, source=_GO)
def _encoded(inputs: Properties) -> Iterator[Violation]:
    """Bytes are written in base64; text has fields of its own."""
    field, plain = ("data", "stringData") if inputs["kind"] == "Secret" else ("binaryData", "data")
    for key, value in mapping(inputs.get(field)).items():
        try:
            base64.b64decode((text(value) or "").replace("\n", "").replace("\r", ""), validate=True)
        except (binascii.Error, ValueError):
            yield invalid(f"{field}[{key}]", "...", "illegal base64 data", f"Give text as `{plain}`.")


@BOOK.rule("K8S-DATA-002", CONFIG_MAP, SECRET, source=CORE)
def _keys(inputs: Properties) -> Iterator[Violation]:
    """Keys are names of files."""
    for field in ("data", "binaryData", "stringData"):
        for key in mapping(inputs.get(field)):
            if not _KEY.fullmatch(str(key)):
                detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
                # The API server stores text of the program as bytes.
                kept = "data" if field == "stringData" else field
                yield invalid(f"{kept}[{key}]", key, detail)
