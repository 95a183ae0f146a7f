"""The program that stands for gcloud in a rehearsal: it sends words and input to the emulated services."""

import sys
from pathlib import Path

_NAME = "gcloud"
PATH = "rehearsal/gcloud"
"""Path of the request, which no service of Google has."""
_PROGRAM = """#!{python}
import json, sys, urllib.parse, urllib.request
def post(path, data, **headers):
    request = urllib.request.Request({url!r} + path, data=data, headers=headers, method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
form = urllib.parse.urlencode({{"refresh_token": {key!r}}}).encode()
token = post({login!r}, form)["access_token"]
words = {{"words": sys.argv[1:], "input": sys.stdin.read()}}
done = post("/" + {path!r}, json.dumps(words).encode(), Authorization="Bearer " + token)
sys.stdout.write(done["output"])
sys.stderr.write(done["errors"])
sys.exit(done["code"])
"""


def program(home: Path, *, url: str, login: str, key: str) -> Path:
    """Write the program of a home; returns its path."""
    file = home / "programs" / _NAME
    text = _PROGRAM.format(python=sys.executable, url=url, login=login, key=key, path=PATH)
    if not file.exists() or file.read_text() != text:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o700)
    return file
