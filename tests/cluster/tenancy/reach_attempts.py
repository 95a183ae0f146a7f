"""Attempts to publish, to open the network, and to reach nodes."""

from components.kubernetes.queueing.exposure import NETWORK, ROUTES, SERVICES
from components.kubernetes.queueing.given import GIVEN
from tests.cluster.tenancy.attempt import PORTS, RBAC, Attempt, Send, body, call, create, delete, patch
from tests.cluster.tenancy.scene import pod_spec

GIVEN_STAYS, CLOSED = (GIVEN,), (NETWORK,)


def service(**spec: object) -> Send:
    return create(body("Service", spec={"selector": {"app": "own"}, "ports": PORTS, **spec}))


def admitting(*rules: object) -> Send:
    return create(
        body("NetworkPolicy", spec={"podSelector": {}, "policyTypes": ["Ingress"], "ingress": list(rules)})
    )


PUBLISH = [
    *(
        Attempt(f"a Service of type {kind}", service(type=kind), (SERVICES,))
        for kind in ("LoadBalancer", "NodePort")
    ),
    Attempt(
        "a Service of another name", service(type="ExternalName", externalName="example.com"), (SERVICES,)
    ),
    Attempt("a Service for the address of another", service(externalIPs=["10.0.0.1"]), (SERVICES,)),
    *(
        Attempt(
            f"publish a Service that exists: {name}", patch("Service", "served", {"spec": spec}), (SERVICES,)
        )
        for name, spec in (
            ("load balancer", {"type": "LoadBalancer"}),
            ("node port", {"type": "NodePort"}),
            ("address", {"externalIPs": ["10.0.0.1"]}),
        )
    ),
    Attempt(
        "the status of a Service",
        patch(
            "Service",
            "served",
            {
                "status": {
                    "loadBalancer": {
                        "ingress": [{"ip": "10.0.0.1"}],
                    }
                }
            },
            sub="status",
        ),
        RBAC,
    ),
    Attempt(
        "an Ingress",
        create(
            body(
                "Ingress",
                spec={
                    "defaultBackend": {
                        "service": {"name": "served", "port": {"number": 80}},
                    }
                },
            )
        ),
        (ROUTES,),
    ),
    Attempt(
        "a class of Ingresses",
        create(body("IngressClass", spec={"controller": "x.example/y"}), where=""),
        RBAC,
    ),
    Attempt(
        "a route of the Gateway API",
        call(
            "POST",
            "/apis/gateway.networking.k8s.io/v1/namespaces/{own}/httproutes",
            {"metadata": {"name": "x"}},
        ),
        RBAC,
    ),
    Attempt(
        "Endpoints of the metadata service",
        create(
            body(
                "Endpoints",
                name="served",
                subsets=[
                    {"addresses": [{"ip": "10.0.0.9"}], "ports": PORTS},
                ],
            )
        ),
        RBAC,
    ),
    Attempt(
        "an EndpointSlice of another team's pod",
        create(
            body(
                "EndpointSlice",
                labels={"kubernetes.io/service-name": "served"},
                addressType="IPv4",
                endpoints=[{"addresses": ["10.0.0.9"]}],
                ports=PORTS,
            )
        ),
        RBAC,
    ),
    Attempt("delete the given network policy", delete("NetworkPolicy", "same-namespace-only"), GIVEN_STAYS),
    Attempt(
        "widen the given network policy",
        patch("NetworkPolicy", "same-namespace-only", {"spec": {"ingress": [{}]}}),
        (GIVEN, NETWORK),
    ),
    Attempt("delete all network policies", delete("NetworkPolicy", ""), GIVEN_STAYS),
    Attempt("a network policy for everyone", admitting({}), CLOSED),
    Attempt("a network policy for any peer", admitting({"from": []}), CLOSED),
    Attempt("a network policy for all namespaces", admitting({"from": [{"namespaceSelector": {}}]}), CLOSED),
    Attempt(
        "a network policy for pods of all namespaces",
        admitting({"from": [{"namespaceSelector": {}, "podSelector": {}}]}),
        CLOSED,
    ),
    Attempt(
        "a network policy for addresses", admitting({"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}), CLOSED
    ),
]


NODES = [
    Attempt(
        "the network of the node", create(body("Pod", spec=pod_spec(hostNetwork=True))), ("Pod Security",)
    ),
    Attempt("processes of the node", create(body("Pod", spec=pod_spec(hostPID=True))), ("Pod Security",)),
    Attempt(
        "a folder of the node",
        create(body("Pod", spec=pod_spec(volumes=[{"name": "root", "hostPath": {"path": "/"}}]))),
        ("Pod Security", "trainstack-volumes"),
    ),
    *(
        Attempt(
            f"all of a file server: {kind}",
            create(body("Pod", spec=pod_spec(volumes=[{"name": "all", kind: source}]))),
            ("trainstack-volumes",),
        )
        for kind, source in (
            ("nfs", {"server": "10.0.0.2", "path": "/"}),
            ("csi", {"driver": "efs.csi.aws.com"}),
            ("iscsi", {"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:a", "lun": 0}),
        )
    ),
    Attempt(
        "a volume of the node",
        create(
            body(
                "PersistentVolume",
                spec={
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "hostPath": {"path": "/"},
                },
            ),
            where="",
        ),
        RBAC,
    ),
    Attempt("the kubelet of a node", call("GET", "/api/v1/nodes/cpu-0/proxy/pods"), RBAC),
    Attempt("objects of other nodes", call("GET", "/api/v1/nodes"), RBAC),
]
