"""Keys and certificates are real: other programs can read, verify and use them."""

import datetime
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from rehearsal.core.model import RefusalError
from rehearsal.helpers import certificates, keys
from tests.rehearsal.driver import refused

RSA = {"algorithm": "RSA", "rsaBits": 2048, "ecdsaCurve": "P224"}
NAME = {"commonName": "mlflow.example.com", "organization": "Research"}


@pytest.mark.parametrize(
    "inputs",
    [RSA, *({**RSA, "algorithm": "ECDSA", "ecdsaCurve": curve} for curve in ("P224", "P256", "P521")),
     {**RSA, "algorithm": "ED25519"}],
)  # fmt: skip
def test_every_format_is_the_same_key(inputs: dict[str, Any]) -> None:
    identifier, outputs = keys.make(inputs)
    again = keys.load(outputs["privateKeyPem"])
    assert keys.algorithm_of(again) == inputs["algorithm"] and keys.digest(again) == identifier
    assert keys.digest(keys.load(outputs["privateKeyPemPkcs8"])) == identifier
    assert keys.public(again)["publicKeyPem"] == outputs["publicKeyPem"]
    if outputs["privateKeyOpenssh"]:
        assert keys.digest(keys.load(outputs["privateKeyOpenssh"])) == identifier
    else:
        assert inputs["ecdsaCurve"] == "P224"


def test_fingerprints_are_those_of_ssh_keygen(tmp_path: Path) -> None:
    outputs = keys.make({**RSA, "algorithm": "ED25519"})[1]
    file = tmp_path / "key.pub"
    file.write_text(outputs["publicKeyOpenssh"])
    try:
        printed = subprocess.run(
            ["ssh-keygen", "-l", "-f", str(file)], capture_output=True, text=True, check=True
        ).stdout
    except FileNotFoundError:
        pytest.skip("there is no ssh-keygen")
    assert outputs["publicKeyFingerprintSha256"] in printed


def test_unknown_algorithms_and_broken_keys_are_refused() -> None:
    refused("ED25519", keys.make, {**RSA, "algorithm": "DSA"})
    refused("InvalidPrivateKey", keys.load, "no key")


def authority() -> tuple[str, dict[str, Any]]:
    key = keys.make({**RSA, "algorithm": "ECDSA", "ecdsaCurve": "P256"})[1]["privateKeyPem"]
    uses = ["cert_signing", "crl_signing"]
    inputs = {"privateKeyPem": key, "subject": {"commonName": "ca"}, "validityPeriodHours": 24}
    return key, certificates.self_signed({**inputs, "allowedUses": uses, "isCaCertificate": True})[1]


def test_a_chain_verifies() -> None:
    ca_key, ca = authority()
    key = keys.make({**RSA, "algorithm": "ED25519"})[1]["privateKeyPem"]
    request = certificates.request(
        {
            "privateKeyPem": key,
            "subject": NAME,
            "dnsNames": ["mlflow.example.com"],
            "ipAddresses": ["10.0.0.1"],
        }
    )[1]
    identifier, outputs = certificates.locally_signed(
        {
            "certRequestPem": request["certRequestPem"],
            "caPrivateKeyPem": ca_key,
            "caCertPem": ca["certPem"],
            "validityPeriodHours": 2,
            "allowedUses": ["server_auth", "digital_signature"],
        }
    )
    signed = x509.load_pem_x509_certificate(outputs["certPem"].encode())
    root = x509.load_pem_x509_certificate(ca["certPem"].encode())
    signed.verify_directly_issued_by(root)
    assert str(signed.serial_number) == identifier
    assert signed.not_valid_after_utc - signed.not_valid_before_utc == datetime.timedelta(hours=2)
    names = signed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["mlflow.example.com"]
    assert signed.public_key() == load_pem_private_key(key.encode(), None).public_key()
    assert outputs["caKeyAlgorithm"] == "ECDSA" and outputs["validityEndTime"].endswith("Z")
    constraints = root.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert constraints.ca


def test_uses_and_addresses_are_checked() -> None:
    key = keys.make(RSA)[1]["privateKeyPem"]
    inputs = {"privateKeyPem": key, "subject": NAME, "validityPeriodHours": 1}
    with pytest.raises(RefusalError, match="server_authentication"):
        certificates.self_signed({**inputs, "allowedUses": ["server_authentication"]})
    with pytest.raises(RefusalError, match="InvalidIPAddress"):
        certificates.self_signed({**inputs, "allowedUses": [], "ipAddresses": ["10.0.0.300"]})
