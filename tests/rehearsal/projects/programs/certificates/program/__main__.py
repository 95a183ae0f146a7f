"""An authority of one's own signs a server's certificate, which a cluster's ingress would use."""

import pulumi
import pulumi_kubernetes as k8s
import pulumi_tls as tls

ca_key = tls.PrivateKey("ca", algorithm="ECDSA", ecdsa_curve="P256")
ca = tls.SelfSignedCert(
    "ca",
    private_key_pem=ca_key.private_key_pem,
    subject={"common_name": "ca"},
    validity_period_hours=24,
    is_ca_certificate=True,
    allowed_uses=["cert_signing"],
)
key = tls.PrivateKey("server", algorithm="ED25519")
request = tls.CertRequest("server", private_key_pem=key.private_key_pem, dns_names=["mlflow.example.com"])
certificate = tls.LocallySignedCert(
    "server",
    cert_request_pem=request.cert_request_pem,
    ca_private_key_pem=ca_key.private_key_pem,
    ca_cert_pem=ca.cert_pem,
    validity_period_hours=12,
    allowed_uses=["server_auth"],
)
data = {"tls.crt": certificate.cert_pem, "tls.key": key.private_key_pem}
secret = k8s.core.v1.Secret("tls", type="kubernetes.io/tls", string_data=data)
pulumi.export("secret", secret.metadata["name"])
pulumi.export("certificate", certificate.cert_pem)
