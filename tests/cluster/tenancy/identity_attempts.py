"""Attempts to act as others, and to reach their objects."""

from components.kubernetes.queueing.given import TOKENS
from tests.cluster.tenancy.attempt import RBAC, Attempt, Send, acting_as, body, call, create, patch, raw
from tests.cluster.tenancy.scene import job_spec


def monitoring(plural: str) -> Send:
    return call(
        "POST",
        f"/apis/monitoring.coreos.com/v1/namespaces/{{own}}/{plural}",
        {"metadata": {"name": "forged"}},
    )


IDENTITIES = [
    *(
        Attempt(
            f"a token of an account in {namespace}",
            call(
                "POST",
                f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
            ),
            RBAC,
        )
        for namespace, account in (
            ("kueue-system", "kueue-controller-manager"),
            ("kube-system", "replicaset-controller"),
            ("trainstack-smoke", "default"),
            ("{other}", "default"),
        )
    ),
    Attempt(
        "a token that never ends",
        create(
            body(
                "Secret",
                annotations={"kubernetes.io/service-account.name": "default"},
                type="kubernetes.io/service-account-token",
            )
        ),
        (TOKENS,),
    ),
    Attempt(
        "a token of a year",
        call(
            "POST",
            "/api/v1/namespaces/{own}/serviceaccounts/default/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": 31536000},
            },
        ),
        (TOKENS,),
    ),
    *(
        Attempt(
            f"a request as {user}",
            acting_as(user, raw("GET", "/api/v1/namespaces/{own}/pods"), *groups),
            RBAC,
        )
        for user, *groups in (
            ("system:serviceaccount:kueue-system:kueue-controller-manager",),
            ("system:serviceaccount:{other}:default",),
            ("eve",),
            ("eve", "system:masters"),
        )
    ),
    Attempt(
        "a binding of cluster-admin",
        create(
            body(
                "RoleBinding",
                roleRef={
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                subjects=[],
            )
        ),
        RBAC,
    ),
    Attempt(
        "a role of its own",
        create(
            body(
                "Role",
                rules=[
                    {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
                ],
            )
        ),
        RBAC,
    ),
    Attempt(
        "a certificate",
        create(
            body(
                "CertificateSigningRequest",
                spec={
                    "request": "",
                    "signerName": "kubernetes.io/kube-apiserver-client",
                    "usages": ["client auth"],
                },
            ),
            where="",
        ),
        RBAC,
    ),
    Attempt("look into a token", create(body("TokenReview", spec={"token": "x"}), where=""), RBAC),
    Attempt(
        "the rights of others", create(body("SubjectAccessReview", spec={"user": "eve"}), where=""), RBAC
    ),
    Attempt("the Secrets of the other team", call("GET", "/api/v1/namespaces/{other}/secrets"), RBAC),
    Attempt("a Secret of the other team", call("GET", "/api/v1/namespaces/{other}/secrets/token"), RBAC),
    Attempt(
        "a shell in a pod of the other team",
        call("POST", "/api/v1/namespaces/{other}/pods/some/exec", command="sh"),
        RBAC,
    ),
    Attempt(
        "a Service of the other team through the API server",
        call("GET", "/api/v1/namespaces/{other}/services/served/proxy/"),
        RBAC,
    ),
    Attempt(
        "a job in the other team's namespace", create(body("Job", spec=job_spec()), where="{other}"), RBAC
    ),
    Attempt(
        "the book of the other team", patch("ConfigMap", "gpu-ledger", {"data": {}}, where="{other}"), RBAC
    ),
    Attempt(
        "Prometheus through the API server",
        call(
            "GET",
            "/api/v1/namespaces/trainstack-monitoring/services/prometheus-operated:9090/proxy/api/v1/query",
        ),
        RBAC,
    ),
    Attempt(
        "a forward to Prometheus",
        call("POST", "/api/v1/namespaces/trainstack-monitoring/pods/prometheus-0/portforward"),
        RBAC,
    ),
    *(
        Attempt(f"metrics, alerts or routes of others: {plural}", monitoring(plural), RBAC)
        for plural in (
            "podmonitors",
            "servicemonitors",
            "prometheusrules",
            "probes",
            "scrapeconfigs",
            "alertmanagerconfigs",
        )
    ),
    Attempt(
        "read metrics as a namespace that may",
        patch(
            "Namespace", "{own}", {"metadata": {"labels": {"trainstack.dev/metrics": "allowed"}}}, where=""
        ),
        RBAC,
    ),
    Attempt(
        "an API group of its own",
        create(
            body(
                "APIService",
                name="v1.x.example",
                spec={
                    "group": "x.example",
                    "version": "v1",
                    "groupPriorityMinimum": 1,
                    "versionPriority": 1,
                },
            ),
            where="",
        ),
        RBAC,
    ),
    Attempt(
        "a kind of its own",
        create(body("CustomResourceDefinition", name="xs.x.example", spec={}), where=""),
        RBAC,
    ),
]
