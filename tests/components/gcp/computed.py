"""What Google Cloud says about resources besides their inputs, for mocks."""

from tests.components.graph import Computed

PROJECT, NUMBER = "ml-train-prod", "123456789012"

_COMPUTE = "https://www.googleapis.com/compute/v1"

COMPUTED: Computed = {
    "gcp:compute/network:Network": lambda args: {
        "selfLink": f"{_COMPUTE}/projects/{PROJECT}/global/networks/{args.name}"
    },
    "gcp:compute/subnetwork:Subnetwork": lambda args: {
        "selfLink": f"{_COMPUTE}/projects/{PROJECT}/regions/{args.inputs['region']}/subnetworks/{args.name}"
    },
    "gcp:serviceaccount/account:Account": lambda args: {
        "email": f"{args.inputs['accountId']}@{PROJECT}.iam.gserviceaccount.com",
        "member": f"serviceAccount:{args.inputs['accountId']}@{PROJECT}.iam.gserviceaccount.com",
    },
    "gcp:container/cluster:Cluster": lambda args: {
        "endpoint": "34.1.2.3",
        "masterAuth": {
            "clusterCaCertificate": "Q0E=",
            "clientCertificateConfig": {"issueClientCertificate": False},
        },
        "controlPlaneEndpointsConfig": {
            **args.inputs["controlPlaneEndpointsConfig"],
            "dnsEndpointConfig": {
                **args.inputs["controlPlaneEndpointsConfig"].get("dnsEndpointConfig", {}),
                "endpoint": "gke-0123456789ab-123456789012.us-central1.gke.goog",
            },
        },
    },
}
