"""Policies in the place of a Pod Security Standard: the stack's own takes it, and any weaker one does not."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from components.kubernetes.queueing import node_access
from components.kubernetes.queueing.admission import policies as shipped
from policies.resource import Resource
from policies.rules.kubernetes.pod_policies import lacking
from policies.settings import Settings
from policies.stack import Stack
from smoke_training.fabric import Fabric
from tests.components.gcp.pools.reaching import FLAVOR
from tests.policies.rules.kubernetes.test_pods import one, results

KIND = "admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
LABELS = {"kueue.x-k8s.io/managed-namespace": "true"}
