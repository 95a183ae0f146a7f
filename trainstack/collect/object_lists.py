"""Lists of objects from an API server, page by page."""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.clouds.kubectl import ApiResponse, ClusterApi

WHOLE = "application/json"
_PAGE = "500"
_EXPIRED = 410
"""Status of a list whose pages took too long."""


class ListRefusedError(Exception):
    """A list request failed."""

    def __init__(self, answer: ApiResponse) -> None:
        super().__init__(f"{answer.code}: {answer.message}")
        self.answer = answer


def listed(cluster: ClusterApi, path: str, accept: str = WHOLE, **query: str) -> list[Any]:
    """The items of all pages of a list; in one page if they expire. Raises ListRefusedError."""
    try:
        return [item for page in _pages(cluster, path, accept, query) for item in page]
    except ListRefusedError as error:
        if error.answer.status != _EXPIRED:
            raise
    return list(_page(cluster.get(path, accept, **query))["items"] or ())


def _pages(cluster: ClusterApi, path: str, accept: str, query: Mapping[str, str]) -> Iterator[list[Any]]:
    further: dict[str, str] = {}
    while True:
        page = _page(cluster.get(path, accept, limit=_PAGE, **query, **further))
        yield page["items"] or []
        token = (page.get("metadata") or {}).get("continue")
        if not token:
            return
        further = {"continue": token}


def _page(response: ApiResponse) -> Mapping[str, Any]:
    if response.status != 200 or "items" not in response.body:
        raise ListRefusedError(response)
    return response.body
