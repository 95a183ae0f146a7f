# Every target does its own set-up. PYTHON names a Python 3.11 to 3.13.
PYTHON ?= python3
# The environment of `make up` and `make down`: a file stacks/config/Pulumi.<STACK>.yaml.
STACK ?= dev-aws
CLUSTERS ?= 1
VENV := .venv/bin
TESTS := $(VENV)/python tools/run_tests.py
# Python files that differ from the last commit.
CHANGED = $(shell git diff --name-only --diff-filter=d HEAD -- '*.py'; git ls-files --others --exclude-standard -- '*.py')

# A shell that keeps Python from writing compiled modules makes every process of a run compile PyTorch again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: up down check check-lint check-tests test lint tests unit alone more cluster binaries setup lock clean

up: setup ## Rehearse an environment (STACK, by default dev-aws): a real `pulumi up`, offline, gated by a real training run
	@$(VENV)/trainstack up -s $(STACK) --rehearse --yes

down: setup ## Destroy the rehearsed environment again
	@$(VENV)/trainstack destroy -s $(STACK) --rehearse --yes

check: setup ## Format, lint of changed files, the fast tests: under a minute
	$(MAKE) -j2 check-lint check-tests

check-lint: setup
	$(VENV)/ruff format --check --quiet .
	$(VENV)/ruff check --quiet .
	$(VENV)/python tools/plain_english.py
	$(if $(CHANGED),$(VENV)/mypy $(CHANGED))

check-tests: setup
	$(TESTS) fast

# The type checker has one thread: it runs beside the first tests.
test: setup ## Everything that CI runs
	$(MAKE) -j2 lint tests

lint: setup
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/lint-imports
	$(VENV)/python tools/plain_english.py
	$(VENV)/python tools/links.py

# A test that fails by chance passes when it is run once more at the end, alone: it is reported as FLAKY.
tests: setup binaries
	$(TESTS) unit alone

unit: setup binaries ## The tests that can run beside others
	$(TESTS) unit

alone: setup binaries ## The tests that load or measure the whole machine
	$(TESTS) alone

more: setup binaries ## What shows on further stacks what other tests show
	@$(VENV)/python -m rehearsal.controlplane.binaries --others
	$(TESTS) more more-alone

cluster: setup ## Run CLUSTERS (1) real Kubernetes control planes with Kueue, JobSet and fake GPU nodes, until Ctrl-C
	@$(VENV)/trainstack cluster --clusters $(CLUSTERS)

binaries: setup ## Build the control plane with Go and fetch packages of users, once; says so where that cannot be done
	@$(VENV)/python -m rehearsal.controlplane.binaries
	@$(VENV)/python -m tests.rehearsal.jobs.aws.clients.packages
	@$(VENV)/python -m tests.browser.axe
	@$(VENV)/python -m tests.trainstack.stamp.actionlint
	@$(VENV)/python -m infra.engine.languages
	@$(VENV)/python -m rehearsal.slurm.packages

setup:
	@$(PYTHON) tools/setup.py

# Machines that run the pipelines of clients (trainstack/stamp/templates).
PIPELINES := --quiet --python-version 3.12 --python-platform x86_64-unknown-linux-gnu --only-binary :all: \
  --generate-hashes --no-annotate --no-header --no-emit-index-url

lock: setup ## Lock the dependencies of pyproject.toml again, with hashes and without naming an index
	$(VENV)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --no-emit-index-url --extra dev --extra rehearse pyproject.toml --output-file requirements.lock
	printf 'uv\npulumi\n' | $(VENV)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-annotate \
	  --no-header --no-emit-index-url --constraint requirements.lock - --output-file requirements.bootstrap.lock
	printf 'setuptools\n' | $(VENV)/uv pip compile $(PIPELINES) --constraint requirements.lock pyproject.toml - \
	  --output-file trainstack/stamp/locks/trainstack.lock
	$(VENV)/uv pip compile $(PIPELINES) trainstack/stamp/locks/awscli.in --output-file trainstack/stamp/locks/awscli.lock
	$(VENV)/uv pip compile --quiet --python-version 3.11 --python-platform x86_64-unknown-linux-gnu --generate-hashes \
	  --no-annotate --no-header --no-emit-index-url components/kubernetes/images/mlflow/requirements.in \
	  --output-file components/kubernetes/images/mlflow/requirements.lock

clean: ## Remove what set-up and rehearsals made, state included
	rm -rf .venv .trainstack
