"""Registry of the emulated packages: the only place where the shared code names them."""

import importlib
from collections.abc import Mapping

from rehearsal.core.model import Package

_CLOUDS = ("aws", "gcp", "kubernetes")
PACKAGES: Mapping[str, Package] = {
    **{name: importlib.import_module(f"rehearsal.{name}.package").PACKAGE for name in _CLOUDS},
    "random": Package("rehearsal.helpers.random_values:RandomCloud"),
    "tls": Package("rehearsal.helpers.tls:TlsCloud"),
}
CLOUDS = {name: package for name, package in PACKAGES.items() if package.faults}
ACCOUNTS = {name: package for name, package in PACKAGES.items() if package.limits}
