"""Headless Chromium, driven through its debugging pipe: no other software between a test and the page.

Run as a module it takes a picture of a page:
`python -m tests.browser.chromium PAGE.html PICTURE.png --width 1280 --height 900 [--at ID] [--dark]`.
"""

import argparse
import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")


def program() -> str | None:
    """The browser of this machine; None without one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass
class Page:
    """One page of a browser, which is used by one thread."""

    _into: int
    _out: int
    _rest: bytes = b""
    _number: int = 0
    _session: str = ""
    errors: list[str] = field(default_factory=list)
    """Errors of the console: failed requests, violations of the content security policy, exceptions."""
    requests: list[str] = field(default_factory=list)
    """Addresses that the page asked for."""

    def send(self, method: str, **parameters: Any) -> Any:
        """Send a command of the protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._into, data) :]
        while True:
            got = self._read()
            if got.get("id") == self._number:
                assert "error" not in got, (method, got["error"])
                return got["result"]
            self._note(got)

    def wait_for(self, method: str) -> None:
        """Read until an event."""
        while (got := self._read()).get("method") != method:
            self._note(got)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._out, 1 << 16)
            assert chunk, "the browser ended"
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        method, found = event.get("method"), event.get("params", {})
        if method == "Log.entryAdded" and found["entry"]["level"] == "error":
            self.errors.append(str(found["entry"]["text"]))
        elif method == "Runtime.consoleAPICalled" and found["type"] == "error":
            self.errors.append(str(found["args"]))
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(found["exceptionDetails"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(str(found["request"]["url"]))

    def attach(self) -> None:
        """Open a tab."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def open(
        self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False, media: str = ""
    ) -> None:
        """Load a file into a window, as a reader with dark colours or a printer sees it."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page; promises are awaited."""
        got = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def picture(self, path: Path) -> None:
        """Write what the window shows."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def pdf(self) -> bytes:
        """The page as printed."""
        given = self.send("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return base64.b64decode(given["data"])


@contextmanager
def browser() -> Iterator[Page]:
    """A browser with one tab, which ends with the block."""
    name = program()
    assert name is not None
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        command = [
            *(
                name,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
            ),
            *(f"--user-data-dir={home}", "--no-first-run", "--disable-extensions", "about:blank"),
        ]
        # The browser reads commands from descriptor 3 and writes to 4.
        shell = f'exec "$@" 3<&{read_in} 4>&{write_out}'
        process = subprocess.Popen(
            ["/bin/bash", "-c", shell, "-", *command],
            pass_fds=(read_in, write_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_in)
        os.close(write_out)
        page = Page(write_in, read_out)
        try:
            page.attach()
            yield page
        finally:
            process.terminate()
            process.wait()
            os.close(write_in)
            os.close(read_out)


def main() -> None:
    """Take a picture of a page."""
    parser = argparse.ArgumentParser(description="Take a picture of a page.")
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--at", default="", help="Id of the element at the top of the picture.")
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    with browser() as page:
        page.open(given.page, width=given.width, height=given.height, dark=given.dark)
        if given.at:
            page.evaluate(f"document.getElementById({json.dumps(given.at)}).scrollIntoView()")
        page.picture(given.picture)


if __name__ == "__main__":
    main()
