"""Rules of Terraform's AWS provider, by asking it for plans of changes of each attribute.

The schema that the provider reports says what is computed and what is a set, not what replaces a resource,
what the defaults are, or which values are equal. Its plan says so. It is asked by the protocol of
`terraform plan` for every attribute of every type, reaches no cloud, and checks no value.
"""

import datetime
import http.server
import itertools
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from tools.provider_pairs import SETTINGS, Judge
from tools.provider_protocol import SET, Fields, TerraformProvider, attributes, blocks, running
from tools.provider_source import Attribute, Source

# Attributes in deeper blocks are left out, and so are types with more attributes: trees of statements.
_DEEPEST, _MOST = 3, 500
_DOCUMENT = re.compile(r"policy|json|document|definition|template|pattern|config|schema|body|parameters$")
_NETWORK = re.compile(r"cidr|ip_?v?6?_?(?:address|range)?$")
_STATEMENT = '"Statement":[{"Effect":"Allow","Action":%s,"Resource":"*"}]'
_POLICIES = tuple('{"Version":"2012-10-17",%s}' % (_STATEMENT % action) for action in ('"s3:*"', '["s3:*"]'))
_JSON = ('{"a":"x","b":["y"]}', '{"b": ["y"], "a": "x"}')
_CONTAINERS = ('[{"name":"a","image":"b"}]', '[{"image":"b","name":"a","essential":true}]')
_DOCUMENTS = (
    (_CONTAINERS[0], _CONTAINERS[0].replace('"b"', '"c"')),
    ('{"key":"a"}', '{"key":"b"}'),
)
_EQUAL = (
    (_DOCUMENT, "containers", _CONTAINERS),
    (_DOCUMENT, "policy", _POLICIES),
    (_DOCUMENT, "json", _JSON),
    (_NETWORK, "network", ("2001:db8::/32", "2001:0db8::/32")),
    (re.compile(""), "case", ("value-a", "Value-A")),
    (re.compile("name|domain|zone|record"), "dot", ("example.com", "example.com.")),
    (re.compile("key|text|body"), "space", ("value-a", "value-a\n")),
)


def _asked(judge: Judge, block: Fields, above: list[str]) -> Iterator[tuple[str, Attribute]]:
    """The attributes and blocks in a block."""
    for name, form, required, optional, computed in attributes(block):
        if (required or optional) and (above or name not in ("id", "tags_all")):
            yield name, _attribute(judge, [*above, name], form, optional=optional, computed=computed)
    for name, inner, nesting, lowest in blocks(block):
        if name == "timeouts":
            continue
        steps = [*above, name]
        inside = dict(_asked(judge, inner, steps)) if len(steps) < _DEEPEST else {}
        added, ended = ("", "") if lowest or judge.needs(steps) else judge.removed(steps)
        # With a block come its attributes, each of which may replace.
        own = added == "replace" and (ended == "replace" or not any(one.replaces for one in inside.values()))
        yield name, Attribute(True, ended == "none", replaces=own, is_set=nesting == SET, inner=inside)


def _attribute(judge: Judge, steps: list[str], form: Any, *, optional: bool, computed: bool) -> Attribute:
    """What plans say of one attribute."""
    changed = judge.change(steps, "a", "b")
    listed = judge.listed(steps)
    # Some attributes must be a document, which the plain values are not.
    if form == "string" and changed in ("", "none") and not listed:
        others = (judge.between(steps, *pair) for pair in _DOCUMENTS)
        changed = next((one for one in others if one in ("update", "replace")), changed)
    seen = changed in ("update", "replace")  # else every other value is equal, for a reason of its own
    compared = form == "string" and seen and not listed and len(steps) < _DEEPEST
    ordered = form in ("number", "bool") or (listed and steps[-1].endswith("version"))
    back = judge.change(steps, "b", "a") if ordered else changed
    falls, rises = (changed, back) if form == "bool" else (back, changed)
    return Attribute(
        True,
        computed=computed and optional,
        replaces=changed == back == "replace",
        may=not changed or (rises == "replace" != falls),
        lower=falls == "replace" != rises,
        is_set=isinstance(form, list) and form[0] == "set",
        default=judge.default(steps) if optional and not (computed and judge.legacy) else None,
        alike=_alike(judge, steps) if compared else "",
    )


def _alike(judge: Judge, steps: list[str]) -> str:
    for form, kind, (one, other) in _EQUAL:
        if form.search(steps[-1]) and judge.between(steps, one, other) == "none":
            return kind
    return ""


def _type(provider: TerraformProvider, name: str) -> Source | None:
    judge = Judge(provider, name)
    size = sum(1 for _ in itertools.islice(judge.places(_DEEPEST), _MOST + 1))
    if size > _MOST or not judge.steady:
        sys.stderr.write(
            f"{name}: {' '.join(judge.errors)[:90] if size <= _MOST else f'{size} attributes'}\n"
        )
        return None
    asked = dict(_asked(judge, judge.block, []))
    return Source(asked, nulls=not judge.legacy)


class _Valid(http.server.BaseHTTPRequestHandler):
    """Step Functions, which the provider asks during a plan whether a definition is valid."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"result":"OK","diagnostics":[]}'
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def _settings() -> Iterator[dict[str, Any]]:
    """Settings of the provider with which it asks this process alone."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Valid)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {**SETTINGS, "endpoints": [{"sfn": f"http://127.0.0.1:{server.server_port}"}]}
    finally:
        server.shutdown()
        server.server_close()


def read(binary: Path, types: Sequence[str] = ()) -> tuple[dict[str, str], dict[str, Source]]:
    """The provider's version, and each of its types, or of `types`, by name."""
    version = re.search(r"_v([\d.]+)", binary.name)
    day = datetime.datetime.fromtimestamp(binary.stat().st_mtime, datetime.UTC).date().isoformat()
    head = {
        "source": "plans of hashicorp/terraform-provider-aws",
        "commit": f"v{version and version[1]}",
        "date": day,
    }
    found: dict[str, Source] = {}
    left: list[str] | None = None
    while left is None or left:
        with running(binary) as provider, _settings() as settings:
            provider.configure(settings)
            left = sorted(types or provider.schemas) if left is None else left
            while left:
                name = left.pop(0)
                try:
                    source = _type(provider, name)
                except grpc.RpcError as error:  # it ended: the next one begins behind this type
                    sys.stderr.write(f"{name}: the provider ended: {error.code()}\n")
                    break
                if source is not None:
                    found[name] = source
    return head, found
