"""Devices that are shares of a GPU: their names in books, and their part of a GPU. Pure; runs in a pod.

Kueue counts a share as `nvidia.com/gpu: 1`, as it counts a whole GPU. A book names it after its part,
`nvidia.com/gpu/4` for a fourth: so rows stay true when the sharing of a pool changes.
"""


def share(resource: str, parts: int) -> str:
    """The name of a device of which each GPU has `parts`; 1: a whole GPU."""
    return f"{resource}/{parts}" if parts > 1 else resource


def parts(resource: str) -> int:
    """Number of such devices of a GPU."""
    _, _, number = resource.removeprefix("nvidia.com/").partition("/")
    return int(number) if number.isdecimal() and int(number) else 1


def renamed(resource: str, number: int) -> str:
    """The name of the same device in a pool with this number of shares of each GPU."""
    prefix, name = resource.split("/")[:2]
    return share(f"{prefix}/{name}", number)
