"""The reader of Terraform's language, on texts of every form that examples of checks use."""

from typing import Any

import pytest

from benchmarks.peers.hcl import Block, Call, HclSyntaxError, Opaque, Reference, Template, parse
from benchmarks.peers.terraform import Evaluation, Module
from policies.resource import is_unknown

VALUES: list[tuple[str, Any]] = [
    ("-1.5", -1.5),
    ("1e3", 1000.0),
    ("null", None),
    (r'"a \"quoted\" line\n"', 'a "quoted" line\n'),
    ('"$${literal} %%{literal}"', "${literal} %{literal}"),
    ('["a", true, # a comment\n 3,\n]', ["a", True, 3]),
    ('{ a = 1, "b c" : 2\n d = [] }', {"a": 1, "b c": 2, "d": []}),
    ("aws_kms_key.a.arn", Reference(("aws_kms_key", "a", "arn"))),
    ("aws_subnet.a[*].id", Reference(("aws_subnet", "a", "*", "id"))),
    ('"x-${var.n}"', Template(("x-", Reference(("var", "n"))))),
    ('jsonencode({ a = "b" })', Call("jsonencode", ({"a": "b"},))),
    ('var.a == 1 ? "b" : "c"', Opaque('var.a == 1 ? "b" : "c"')),
    ("[for one in var.a : one.id if one.b]", Opaque("for one in var.a : one.id if one.b]")),
    ("{ for k, v in var.a : k => { b = v } }", Opaque("for k, v in var.a : k => { b = v } }")),
    ("<<-EOT\n    a\n      b\n    EOT", "a\n  b\n"),
    ("<<EOT\n{${1}}\nEOT", Template(("{", 1, "}\n"))),
    ("(3)", 3),
]


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[text for text, _ in VALUES])
def test_values(text: str, value: Any) -> None:
    found = parse(f"a = {text}\nb = 2\n").attributes
    assert (found["a"], found["b"]) == (value, 2)


def test_blocks_and_comments() -> None:
    text = '# one\nresource "a" "b" {\n  /* two */ c { d = 1 }\n  c {}\n}\n// three'
    inner = [Block("c", attributes={"d": 1}), Block("c")]
    assert parse(text).blocks == [Block("resource", ("a", "b"), blocks=inner)]


@pytest.mark.parametrize("text", ['a = "b', "a {", "a = <<EOT\nb", "a = [1", "= 3", "a = {b 3}"])
def test_what_is_not_in_the_language_is_refused(text: str) -> None:
    with pytest.raises(HclSyntaxError, match=r"line [12]: "):
        parse(text)


def test_a_value_that_the_example_does_not_have_is_unknown() -> None:
    module = Module()
    module.add(parse('variable "a" { default = "x" }\nvariable "b" {}\nlocals { c = "${var.a}-${var.a}" }'))
    evaluation = Evaluation(module)
    given = parse('a = local.c\nb = var.b\nc = "${var.b}"\nd = data.aws_region.a.name').attributes
    found = {name: evaluation.value(one, name) for name, one in given.items()}
    assert found["a"] == "x-x"
    assert [is_unknown(found[name]) for name in "bcd"] == [True, True, True]
