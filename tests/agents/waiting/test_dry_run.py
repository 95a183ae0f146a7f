"""Responses to a dry run, and when the program gives up."""

from pathlib import Path
from typing import Any

import pytest

from agents.shared.api_server import FORBIDDEN_S, ApiServer, finish
from agents.waiting.dry_run import IN_A_ROW, POLL_S, wait

Said = tuple[int, dict[str, str]]
CALLING: Said = (
    500,
    {
        "reason": "InternalError",
        "message": 'Internal error occurred: failed calling webhook "mresourceflavor.kb.io": refused',
    },
)
MADE: Said = (201, {"kind": "ResourceFlavor"})
DENIED: Said = (403, {"reason": "Forbidden", "message": 'admission webhook "v" denied the request: spec.x'})
NO_RIGHT: Said = (403, {"reason": "Forbidden", "message": 'User "u" may not'})
EXISTS: Said = (409, {"reason": "AlreadyExists", "message": "already exists"})


class Server(ApiServer):
    """Answers what it is given, the last one for ever."""

    def __init__(self, *answers: Said | OSError) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, str]]()

    def ask(self, method: str, path: str, body: Any = None) -> Said:
        self.asked.append((method, path))
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer


def asked(server: Server) -> tuple[bool, str]:
    return wait(server, "/apis/g/v1/things", {"kind": "Thing"}, 20, lambda _: None)


@pytest.mark.parametrize("answer", [MADE, DENIED, EXISTS, (422, {"reason": "Invalid", "message": "spec.x"})])
def test_an_object_that_is_accepted_or_refused_for_what_it_is_was_answered(answer: Said) -> None:
    server = Server(answer)
    assert asked(server)[0]
    assert server.asked == [("POST", "/apis/g/v1/things?dryRun=All")] * IN_A_ROW


@pytest.mark.parametrize(
    "not_yet",
    [
        CALLING,
        (404, {"reason": "NotFound", "message": "the server could not find the requested resource"}),
        (409, {"reason": "Conflict", "message": "the object has been modified"}),
        (429, {"message": "too many requests"}),
        (503, {"message": "no endpoints"}),
        ConnectionRefusedError("refused"),
        TimeoutError("timed out"),
    ],
)
def test_everything_else_is_asked_again_until_it_is_answered(not_yet: Said | OSError) -> None:
    server = Server(not_yet, not_yet, MADE)
    assert asked(server) == (True, "201")
    assert len(server.asked) == 2 + IN_A_ROW


def test_an_api_server_that_does_not_know_the_webhook_yet_starts_the_count_again() -> None:
    server = Server(MADE, MADE, CALLING, MADE)
    assert asked(server)[0]
    assert len(server.asked) == 3 + IN_A_ROW


def test_a_webhook_that_never_answers_is_named_at_the_end() -> None:
    passed, reason = asked(Server(CALLING))
    assert not passed
    assert '500 Internal error occurred: failed calling webhook "mres' in reason


def test_an_account_without_the_right_ends_before_the_limit() -> None:
    server = Server(NO_RIGHT)
    done, reason = asked(server)
    assert not done and '403 User "u"' in reason
    assert len(server.asked) == FORBIDDEN_S / POLL_S + 1


def test_an_api_server_that_does_not_know_the_role_yet_is_retried() -> None:
    assert asked(Server(NO_RIGHT, NO_RIGHT, OSError("away"), NO_RIGHT, MADE)) == (True, "201")


def test_a_message_is_cut_between_letters(tmp_path: Path) -> None:
    assert finish("ä" * 3000, tmp_path / "message", passed=False) == 1
    assert (tmp_path / "message").read_text() == "ä" * 2048
