# What a contributor runs. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
IMAGE_TOOL ?= buildah
IMAGE_FLAGS ?=
BASE ?= $(shell sed -n 's/^ARG BASE=//p' Containerfile)
HELM ?= helm
DIST ?= dist
ACTIONLINT := v1.7.12
KREW := v0.4.4
AXE := 4.14.0
WITHOUT_CLUSTER := tests --ignore=tests/cluster --ignore=tests/node --ignore=tests/shells --ignore=tests/browser
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' src/foresail/__init__.py)
IMAGE ?= foresail:$(VERSION)$(TAG_SUFFIX)
# Full runs, oracles and measurements: bench/measurements.toml says what they do.
MEASUREMENTS := \
  deletion-worlds moment-worlds takeover perturb perturb-ha transitions etcd-restore etcd-restore-ha \
  retention-oracle retention-kills \
  plan-oracle rollback-plan-oracle coverage-oracle restore-checks truth redteam stolen-token hostile-load \
  api-server-starts \
  bench-admission restore-authorization selfservice-specs selfservice-kills selfservice-queue tenant-schedule-kills \
  bench-tenant-schedules tenant-schedule-year bench-selfservice bench-whole protection-kills rollback-kills bench-protection \
  protection-nights protection-oracle schedule-year schedule-kills schedule-gitops schedule-clusters bench-schedules \
  bench-schedule-policies cron-oracle cron-shift cron-fuzz bench-cron primer-year primer-kills primer-kept \
  primer-admission bench-primers bench-console bench-fleet bench-hand bench-runtime runtime-kills bench-scale \
  chart-upgrade disaster soak node-rounds matrix
OPTIONS := size first rounds seed points kills histories starts cronjobs minutes velero

.DEFAULT_GOAL := help
.PHONY: help setup lint format crds fences manifests docs docs-site sbom charts arm-wheels \
  test-python lint-workflows base image image-size wheel pyz bench-pyz plugins test-krew audit test coverage \
  test-shells test-console test-browser screenshots test-node test-cluster test-part cluster-build lock ci $(MEASUREMENTS)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Full runs, oracles and measurements, as make truth or make deletion-worlds SIZE=0.03; python -m bench lists them:"
	@echo $(MEASUREMENTS) | fold -s -w 118 | sed 's/^/  /'

setup: $(STAMP) ## make .venv with every pinned dependency (nothing else is installed anywhere)

$(STAMP): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	sed -n '/^uv==/,/[^\\]$$/p' requirements/dev.txt > $(VENV)/uv.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
	$(BIN)/uv pip install --quiet --python $(VENV) --require-hashes -r requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(VENV) --no-deps --no-build-isolation -e .
	touch $@

lint: setup ## style, types, import layers, complexity and the length of pages
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -q tests/unit/test_complexity.py
	$(BIN)/python -m docs.words --quiet

format: setup ## let ruff rewrite what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

crds: setup ## render the definitions of our kinds from their types into charts/foresail-crds
	$(BIN)/python -m foresail.api.crds charts/foresail-crds/templates

fences: setup ## render the fences of the ServiceAccounts from what the operator writes into charts/foresail
	$(BIN)/python -m foresail.operator.fences charts/foresail/templates

manifests: setup ## render the charts with Helm into the manifest that `foresail install` applies
	$(BIN)/python -m testbed build helm
	$(BIN)/python -m testbed.charts src/foresail/manifests

docs: setup ## write the reference pages and the pictures from the code
	$(BIN)/python -m docs.generate
	for script in docs/draw_*.py; do $(BIN)/python -m docs.$$(basename $$script .py) || exit 1; done

docs-site: $(VENV)/.docs ## build the docs as a site into build/site; a link that leads nowhere or an external asset is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --clean
	$(BIN)/python -m docs.external_assets build/site
	$(BIN)/python -m docs.site_targets build/site

$(VENV)/.docs: $(STAMP) requirements/docs.txt
	$(BIN)/uv pip install --quiet --python $(VENV) --require-hashes -r requirements/docs.txt
	touch $@

sbom: $(VENV)/.release wheel ## write the bill of materials of what is installed at run time into dist/
	$(BIN)/uv venv --quiet --clear build/sbom
	$(BIN)/uv pip install --quiet --python build/sbom --no-deps --require-hashes -r requirements/run.txt
	$(BIN)/uv pip install --quiet --python build/sbom --no-deps $(DIST)/foresail-$(VERSION)-py3-none-any.whl
	$(BIN)/cyclonedx-py environment --output-reproducible --output-file $(DIST)/foresail.cdx.json build/sbom/bin/python

charts: ## package both charts into dist/, as `helm push` takes them
	$(HELM) package charts/foresail-crds charts/foresail --destination $(DIST)

arm-wheels: setup ## install every pinned dependency for arm64, which needs a wheel of each, into build/arm64
	rm -rf build/arm64
	$(BIN)/uv pip install --quiet --target build/arm64 --python-platform aarch64-manylinux_2_28 --python-version 3.11 \
	  --only-binary :all: --no-deps --require-hashes -r requirements/otel.txt

test-python: ## the tests that need no cluster with another Python, as PYTHON=python3.13
	$(PYTHON) -m venv --clear build/python
	build/python/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	build/python/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	build/python/bin/pytest $(WITHOUT_CLUSTER) -m 'not timed'

lint-workflows: ## check the workflows by actionlint, built from the Go module proxy
	go run github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT)

base: ## print the base of the image
	@echo $(BASE)

image: ## build the image foresail:VERSION with buildah, or with IMAGE_TOOL=podman; PINNED=1 refuses a base without a digest
	$(if $(PINNED),@echo $(BASE) | grep -qE '@sha256:[0-9a-f]{64}$$' || { echo "base $(BASE) has no digest: give BASE=name@sha256:..." >&2; exit 1; })
	$(IMAGE_TOOL) build --build-arg BASE=$(BASE) --tag $(IMAGE) $(IMAGE_FLAGS) .

image-size: setup ## measure what the image has above its base
	$(BIN)/python -m release.image_size $(IMAGE) $(BASE)

wheel: setup ## build the wheel into dist/
	$(BIN)/python -m hatchling build --target wheel --directory $(DIST)

pyz: wheel ## build foresail.pyz into dist/: one file for every Python and system that we support
	$(BIN)/python -m release.pyz $(DIST)/foresail-$(VERSION)-py3-none-any.whl $(DIST)/foresail.pyz

bench-pyz: pyz ## start foresail.pyz and the installed wheel in turns, medians of ten; the last line is JSON
	$(BIN)/python -m bench.pyz $(DIST)/foresail.pyz $(DIST)/foresail-$(VERSION)-py3-none-any.whl

plugins: pyz ## write the krew manifest and the Homebrew formula into dist/; ADDRESS=https://host/owner/name of the repository
	$(BIN)/python -m release.plugins $(DIST)/foresail.pyz "$(ADDRESS)"

test-krew: pyz build/krew/bin/krew ## install the plugin by krew from a local archive and start it; needs kubectl, git and Go
	rm -rf build/krew/root build/krew/plugin && mkdir -p build/krew/plugin && cp $(DIST)/foresail.pyz build/krew/plugin
	$(BIN)/python -m release.plugins build/krew/plugin/foresail.pyz https://example.com/foresail
	build/krew/bin/validate-krew-manifest -skip-install -manifest build/krew/plugin/foresail.yaml
	KREW_ROOT=$(CURDIR)/build/krew/root build/krew/bin/krew install --manifest=build/krew/plugin/foresail.yaml \
	  --archive=build/krew/plugin/kubectl-foresail-$(VERSION).tar.gz
	PATH="$(CURDIR)/build/krew/root/bin:$$PATH" kubectl foresail version --client

build/krew/bin/krew:
	mkdir -p build/krew/src
	printf 'module krew\n\ngo 1.22\n\nrequire sigs.k8s.io/krew $(KREW)\n' > build/krew/src/go.mod
	cd build/krew/src && GOFLAGS=-mod=mod go build -o ../bin/ sigs.k8s.io/krew/cmd/krew sigs.k8s.io/krew/cmd/validate-krew-manifest

audit: $(VENV)/.release ## ask whether a pinned dependency is known to be vulnerable; needs the network
	$(BIN)/pip-audit --require-hashes --disable-pip --strict --requirement requirements/run.txt --requirement requirements/otel.txt

$(VENV)/.release: $(STAMP) requirements/release.txt
	$(BIN)/uv pip install --quiet --python $(VENV) --require-hashes -r requirements/release.txt
	touch $@

test: setup ## the tests that need no cluster: seconds
	$(BIN)/pytest $(WITHOUT_CLUSTER)

coverage: setup ## which lines and branches the tests without a cluster reach: half an hour
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(WITHOUT_CLUSTER) -m "not timed and not repeats"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

test-shells: setup ## completion in a real zsh, which must be installed: seconds
	$(BIN)/pytest tests/shells

test-console: setup cluster-build build/browser/node_modules ## two viewers walk through the console on a real cluster; needs Chromium; the last line is JSON: minutes
	$(BIN)/python -m tests.console

test-browser: setup build/browser/node_modules ## the report and the console in Chromium, which must be installed; axe-core comes from npm: minutes
	$(BIN)/pytest -s tests/browser

build/browser/node_modules:
	npm install --silent --no-save --prefix build/browser axe-core@$(AXE) || echo "axe-core cannot be fetched: accessibility is not tested"

screenshots: setup ## take the pictures of the report and the console for the docs with Chromium
	$(BIN)/python -m docs.screenshots

test-node: setup ## the tests on a real node with containers; needs root and packages, and says which; the last line is JSON: minutes
	FORESAIL_FULL=1 $(BIN)/python -m tests.node

test-cluster: setup cluster-build ## the tests on a real cluster that they start themselves: minutes
	$(BIN)/pytest tests/cluster

test-part: setup cluster-build ## one part of the tests on real clusters: PART=schedules, tenants, install, checks or runtime: minutes
	tests=$$(.ci/parts $(PART)) && $(BIN)/pytest --timeout=600 $$tests

cluster-build: setup ## build the cluster's programs: half an hour once, then cached
	$(BIN)/python -m testbed build

lock: setup ## pin every dependency again, with hashes, after a change in pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  --extra otel --group dev --output-file requirements/dev.txt pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --constraint requirements/dev.txt --output-file requirements/run.txt pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --constraint requirements/dev.txt --extra otel --output-file requirements/otel.txt pyproject.toml
	for group in build docs release; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    --constraint requirements/dev.txt --group $$group --output-file requirements/$$group.txt || exit 1; done

$(MEASUREMENTS): setup
	$(BIN)/python -m bench $@ $(foreach option,$(OPTIONS),$(addprefix --$(option) ,$($(shell echo $(option) | tr a-z A-Z))))

ci: ## everything that CI runs, as CI runs it
	.ci/run
