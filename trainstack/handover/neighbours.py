"""Names of other clients: folders beside a client's, and those in the fleet file."""

from pathlib import Path

from infra.places import client_folder_at
from trainstack.fleet import NAME, fleet_file


def names_of_others(folder: Path, fleet: Path | None) -> set[str]:
    """The names. Raises UserError for a fleet file that cannot be read.

    Without a fleet file given, the one beside the client's folder is used where it exists.
    """
    beside = {
        one.name
        for one in folder.parent.iterdir()
        if one != folder and one.is_dir() and client_folder_at(one) == one
    }
    path = fleet or folder.parent / NAME
    if fleet is not None or path.is_file():
        base = path if path.is_dir() else path.parent
        for client in fleet_file.load(path).clients:
            if (base / (client.folder or client.name)).resolve() != folder.resolve():
                beside.add(client.name)
    return beside
