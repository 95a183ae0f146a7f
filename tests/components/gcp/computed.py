"""Computed outputs of Google Cloud resources, for mocks."""

import zlib

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
        "uniqueId": str(10**20 + zlib.crc32(args.inputs["accountId"].encode())),
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
    "gcp:lustre/instance:Instance": lambda args: {
        "name": f"projects/{PROJECT}/locations/{args.inputs['location']}"
        f"/instances/{args.inputs['instanceId']}",
        "mountPoint": f"10.1.2.3@tcp:/{args.inputs['filesystem']}",
    },
    "gcp:filestore/instance:Instance": lambda args: {
        "name": f"{args.name}-1a2b3c4",
        "networks": [{**args.inputs["networks"][0], "ipAddresses": ["10.4.5.6"]}],
    },
    "gcp:projects/serviceIdentity:ServiceIdentity": lambda args: {
        "member": f"serviceAccount:agent-of-{args.inputs['service'].partition('.')[0]}@system.test"
    },
    "gcp:projects/iAMCustomRole:IAMCustomRole": lambda args: {
        "name": f"projects/{PROJECT}/roles/{args.inputs['roleId']}"
    },
    "gcp:cloudrunv2/service:Service": lambda args: {"uri": f"https://{args.name}-0123456789-uc.a.run.app"},
    "gcp:sql/databaseInstance:DatabaseInstance": lambda _: {
        "privateIpAddress": "10.9.0.3",
        "serverCaCerts": [{"cert": "-----BEGIN CERTIFICATE-----"}],
    },
}
