"""The `tls` package: real keys, signing requests and certificates."""

from collections.abc import Callable, Mapping
from pathlib import Path

from rehearsal.core.model import Properties
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.helpers import certificates, keys
from rehearsal.helpers.cloud import HelperCloud, Maker

_IN_PLACE = frozenset({"earlyRenewalHours"})


class TlsCloud(HelperCloud):
    """See `model.EmulatedCloud`."""

    def __init__(self, state: State, schemas: Schemas, home: Path) -> None:
        super().__init__(schemas, MAKERS, _FUNCTIONS)


def _public_key(args: Properties) -> Properties:
    """The public half of a private key."""
    key = keys.load(args.get("privateKeyPem") or args.get("privateKeyOpenssh"))
    return {**args, **keys.public(key), "algorithm": keys.algorithm_of(key), "id": keys.digest(key)}


_FUNCTIONS: Mapping[str, Callable[[Properties], Properties]] = {"getPublicKey": _public_key}
MAKERS: Mapping[str, Maker] = {
    "tls:index/privateKey:PrivateKey": Maker(keys.make, {"rsaBits": 2048, "ecdsaCurve": "P224"}),
    "tls:index/certRequest:CertRequest": Maker(certificates.request),
    "tls:index/selfSignedCert:SelfSignedCert": Maker(
        certificates.self_signed,
        {
            "earlyRenewalHours": 0,
            "isCaCertificate": False,
            "setSubjectKeyId": False,
            "setAuthorityKeyId": False,
        },
        _IN_PLACE,
    ),
    "tls:index/locallySignedCert:LocallySignedCert": Maker(
        certificates.locally_signed,
        {"earlyRenewalHours": 0, "isCaCertificate": False, "setSubjectKeyId": False},
        _IN_PLACE,
    ),
}
