"""The program that stands for kubectl in a rehearsal: it sends words, kubeconfig and input to the daemon."""

import sys
from pathlib import Path

_NAME = "kubectl"
PATH = "rehearsal/kubectl"
"""Path of the request, which no service has."""
_PROGRAM = """#!{python}
import json, sys, urllib.parse, urllib.request
def post(path, data, **headers):
    request = urllib.request.Request({url!r} + path, data=data, headers=headers, method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
form = urllib.parse.urlencode({{"refresh_token": {key!r}}}).encode()
token = post({login!r}, form)["access_token"]
files = [word.partition("=")[2] for word in sys.argv[1:] if word.startswith("--kubeconfig=")]
words = [word for word in sys.argv[1:] if not word.startswith("--kubeconfig=")]
config = open(files[0], encoding="utf-8").read() if files else ""
sent = {{"words": words, "input": sys.stdin.read(), "kubeconfig": config}}
done = post("/" + {path!r}, json.dumps(sent).encode(), Authorization="Bearer " + token)
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
