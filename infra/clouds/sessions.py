"""Logins that end while a command runs: detection in the errors of providers, and the way to log in again.

Source of the texts: "Common Error Types" of AWS's API references (ExpiredTokenException), EC2 API reference,
"Error codes" (RequestExpired), aws-sdk-go-v2 credentials/ssocreds and config ("refresh cached SSO token
failed"); golang.org/x/oauth2 token.go and RFC 6749 (invalid_grant) for Google.
"""

import re
from collections.abc import Iterable
from typing import Final

AWS_LOG_IN: Final = "Log in (aws sso login, or aws configure), and set AWS_PROFILE if you have several."
GCP_LOG_IN: Final = "Log in (gcloud auth application-default login), or set GOOGLE_APPLICATION_CREDENTIALS."
_ENDED: Final = {
    AWS_LOG_IN: re.compile(
        r"\bExpiredToken(Exception)?\b|\bRequestExpired\b|security token included in the request is expired"
        r"|refresh cached SSO token failed"
    ),
    GCP_LOG_IN: re.compile(r"\binvalid_grant\b|\binvalid_rapt\b"),
}


def ended(errors: Iterable[str]) -> list[str]:
    """Fixes for each login that ended, by the texts of errors; empty without any."""
    texts = list(errors)
    return [fix for fix, pattern in _ENDED.items() if any(pattern.search(text) for text in texts)]
