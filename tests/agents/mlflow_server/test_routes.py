"""Every route of the installed MLflow is classified: for members, for the administrator, or refused."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agents.mlflow_server import administrator, guard

# Prints the routes of MLflow's application with users: those of Flask, and those of FastAPI.
ROUTES = """
import json
from fastapi.openapi.utils import get_openapi
from mlflow.server import app, auth
routes = list(get_openapi(title="all", version="1", routes=auth.create_app().routes)["paths"])
print(json.dumps(routes + [rule.rule for rule in app.url_map.iter_rules()]))
"""
# Routes that no user needs here: code, outgoing requests, files of the server, other users' names.
REFUSED = Path(__file__).with_name("refused_routes.txt").read_text().split()


def template(route: str) -> str:
    """A route as `guard` writes it."""
    wild = re.sub(r"<[^>]+>|\{[^}]+\}|\*\*", "*", route)
    return re.sub(r"^/(ajax-)?api/[23]\.0/mlflow/", "", wild).replace("/ajax-api/", "/api/")


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("routes")
    uri = f"sqlite:///{folder}/mlflow.db"
    (folder / "auth.ini").write_text(administrator.configuration(uri))
    environment = {
        **os.environ,
        "MLFLOW_AUTH_CONFIG_PATH": str(folder / "auth.ini"),
        "MLFLOW_AUTH_ADMIN_PASSWORD": "a-long-enough-password",
        "MLFLOW_BACKEND_STORE_URI": uri,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "key",
        "_MLFLOW_SGI_NAME": "uvicorn",
    }
    done = subprocess.run(
        [sys.executable, "-c", ROUTES],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return {template(route) for route in json.loads(done.stdout.splitlines()[-1])}


def test_every_route_is_classified_once(routes: set[str]) -> None:
    allowed = [template(route) for route in (*guard.MEMBERS, *guard.ADMINISTRATOR, *guard.OTHERS)]
    classified = {*allowed, *REFUSED}
    assert routes - classified == set(), "new in this MLflow: allow them in guard.py, or list them as refused"
    assert classified - routes == set(), "gone from this MLflow"
    assert not set(allowed) & set(REFUSED) and len(REFUSED) > 100


@pytest.mark.parametrize("route", REFUSED)
def test_a_route_that_is_listed_as_refused_is(route: str) -> None:
    path = route.replace("*", "x")
    for full in (
        [path] if path.startswith("/") else [f"/{api}/3.0/mlflow/{path}" for api in ("api", "ajax-api")]
    ):
        assert guard.access(full) == "refused", full


@pytest.mark.parametrize(
    "path",
    [
        "/ajax-api/3.0/mlflow/assistant/config", "//api/2.0/mlflow/runs/get", "/api/2.0/mlflow/runs/get/",
        "/api/2.0/mlflow/runs/../webhooks", "/api/4.0/mlflow/runs/get", "/api/2.0/mlflow/runs/get\n",
        "/static-files", "/api/2.0/mlflow", "", "/x/api/2.0/mlflow/runs/get", "/API/2.0/mlflow/runs/get",
        "/ajax-api/2.0mlflow/experiments/search-datasets", "/docs", "/openapi.json", "/metrics",
    ],
)  # fmt: skip
def test_what_is_not_listed_is_refused(path: str) -> None:
    assert guard.access(path) == "refused"
