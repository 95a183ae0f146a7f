# Every target does its own set-up. PYTHON names a Python 3.11 to 3.13.
PYTHON ?= python3
# The environment of `make up` and `make down`: a file stacks/config/Pulumi.<STACK>.yaml.
STACK ?= dev-aws
VENV := .venv/bin
# Where tests are that load or measure the whole machine; to look everywhere takes longer than some of them.
ALONE := tests/faults tests/rehearsal/kubernetes tests/rehearsal/runs tests/smoke_training/probes tests/smoke_training/runs

# Three workers on two processors, because tests wait for servers to start. The order of files is that of
# tests/conftest.py: a long file has few tests, in order of their number it would come last. With so many processes,
# a program in Go that uses one processor costs a fifth less than one that looks for work on all; so does one that
# collects garbage a quarter as often. Small models on one thread cost a third: threads wait by spinning.
WORKERS := OMP_NUM_THREADS=1 GOMAXPROCS=1 GOGC=400 $(VENV)/pytest -n 3 --dist loadfile --no-loadscope-reorder

# A shell that keeps Python from writing compiled modules makes every process of a run compile PyTorch again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: up down test lint unit alone more cluster binaries setup lock clean

up: setup ## Rehearse an environment (STACK, by default dev-aws): a real `pulumi up`, offline, gated by a real training run
	@$(VENV)/trainstack up -s $(STACK) --rehearse --yes

down: setup ## Destroy the rehearsed environment again
	@$(VENV)/trainstack destroy -s $(STACK) --rehearse --yes

# The type checker has one thread: the compilers, then the tests get the rest of the machine.
test: setup ## Everything that CI runs
	$(MAKE) -j2 lint unit
	$(MAKE) alone

lint: setup
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/lint-imports
	$(VENV)/python tools/links.py

unit: setup binaries
	$(WORKERS) -m "not alone and not more"

alone: setup binaries ## The tests that load or measure the whole machine
	$(VENV)/pytest -m alone $(ALONE)

more: setup binaries ## What shows on further stacks what other tests show: lives, also on a real control plane, day two and recovery on Google Cloud, and each shape of stack at an API server
	$(WORKERS) -m more

cluster: setup ## Run a real Kubernetes control plane with Kueue, JobSet and fake GPU nodes, until Ctrl-C
	@$(VENV)/trainstack cluster

binaries: setup ## Build the control plane with Go, once; says so where that cannot be done
	@$(VENV)/python -m rehearsal.controlplane.binaries

setup:
	@$(PYTHON) tools/setup.py

lock: setup ## Lock the dependencies of pyproject.toml again, with hashes and without naming an index
	$(VENV)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --no-emit-index-url --extra dev pyproject.toml --output-file requirements.lock
	printf 'uv\npulumi\n' | $(VENV)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-annotate \
	  --no-header --no-emit-index-url --constraint requirements.lock - --output-file requirements.bootstrap.lock
	$(VENV)/uv pip compile --quiet --python-version 3.11 --python-platform x86_64-unknown-linux-gnu --generate-hashes \
	  --no-annotate --no-header --no-emit-index-url components/kubernetes/images/mlflow/requirements.in \
	  --output-file components/kubernetes/images/mlflow/requirements.lock

clean: ## Remove what set-up and rehearsals made, state included
	rm -rf .venv .trainstack
