"""Cheap annotations of the SDKs: a process that only plans sends the same inputs with them."""

import json
import subprocess
import sys
from typing import Any

_PROGRAM = """
import json, sys, typing
import pulumi
from stacks import sdk
if sys.argv[1] == "unknown":
    known = typing.ForwardRef.__init__
    typing.ForwardRef.__init__ = lambda *args, **kwargs: known(*args, **kwargs)
if sys.argv[1] != "full":
    sdk.light_types()
import pulumi_aws as aws

rows = []

class Cloud(pulumi.runtime.Mocks):
    def new_resource(self, args):
        rows.append(args.inputs)
        return args.name, args.inputs

    def call(self, args):
        return {}

def program():
    expiration = aws.s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs(noncurrent_days=3)
    rule = {"id": "old", "status": "Enabled", "noncurrent_version_expiration": {"noncurrent_days": 3}}
    one = aws.s3.BucketLifecycleConfiguration("one", bucket="data", rules=[rule])
    rule = {**rule, "noncurrent_version_expiration": expiration}
    aws.s3.BucketLifecycleConfiguration("two", bucket=one.bucket, rules=[rule])
    return one.rules[0].noncurrent_version_expiration.noncurrent_days.apply(rows.append)

pulumi.runtime.set_mocks(Cloud())
pulumi.runtime.test(program)()
print(json.dumps([rows, "compile" in vars(typing)]))
"""


def _requested(types: str) -> tuple[list[Any], bool]:
    """Inputs and outputs of the program, and whether the annotations were cheap."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM, types], capture_output=True, text=True, check=True)
    found, light = json.loads(done.stdout)
    return found, light


def test_inputs_and_outputs_keep_their_names_and_types() -> None:
    found, light = _requested("light")
    assert light
    assert (found, False) == _requested("full")
    rule = {"id": "old", "status": "Enabled", "noncurrentVersionExpiration": {"noncurrentDays": 3}}
    assert found.count({"bucket": "data", "rules": [rule]}) == 2
    assert 3 in found


def test_a_python_with_other_internals_keeps_its_annotations() -> None:
    assert _requested("unknown") == _requested("full")
