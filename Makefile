# What a contributor runs. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
KILLS ?= 200
SIZE ?= 1
CRONJOBS ?= 100
HISTORIES ?= 10000
MINUTES ?= 60
ROUNDS ?= 20
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

.DEFAULT_GOAL := help
.PHONY: disaster help setup lint format test coverage test-python test-shells test-browser test-console test-node node-rounds test-cluster test-part cluster-build cluster-up cluster-down \
  cron-oracle etcd-restore deletion-worlds retention-oracle plan-oracle coverage-oracle bench-fleet restore-checks cron-shift cron-fuzz schedule-year tenant-schedule-year tenant-schedule-kills bench-tenant-schedules schedule-gitops schedule-kills retention-kills protection-kills schedule-clusters matrix selfservice-specs \
  crds fences manifests docs words docs-site screenshots licences sbom charts arm-wheels wheel pyz plugins test-krew base image image-size audit lint-workflows bench-cron bench-runtime bench-schedules bench-schedule-policies bench-selfservice bench-primers bench-scale bench-console bench-hand bench-pyz primer-year primer-kills primer-kept primer-admission \
  runtime-kills takeover moment-worlds selfservice-kills selfservice-queue restore-authorization truth hostile-load redteam stolen-token bench-admission api-server-starts chart-upgrade soak lock ci

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

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

words: setup ## count the words of the pages for users, beside the budget of each kind of page
	$(BIN)/python -m docs.words

docs-site: $(VENV)/.docs ## build the docs as a site into build/site; a link that leads nowhere or an external asset is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --clean
	$(BIN)/python -m docs.external_assets build/site
	$(BIN)/python -m docs.site_targets build/site

$(VENV)/.docs: $(STAMP) requirements/docs.txt
	$(BIN)/uv pip install --quiet --python $(VENV) --require-hashes -r requirements/docs.txt
	touch $@

licences: setup ## write the licences of what we run with into docs/reference/generated
	$(BIN)/python -m docs.generate

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

takeover: setup ## a follower takes over after every event and around every write, for each capability: minutes
	$(BIN)/python -m tests.worlds.takeover

cron-shift: setup ## 20,000 random shifts against brute force and the Go libraries: minutes
	$(BIN)/python -m bench.cron_shift

test-node: setup ## the tests on a real node with containers; needs root and packages, and says which; the last line is JSON: minutes
	FORESAIL_FULL=1 $(BIN)/python -m tests.node

node-rounds: setup ## bring a cluster with a real node up and down ROUNDS=20 times and count leftovers; the last line is JSON: minutes
	$(BIN)/python -m tests.node.rounds $(ROUNDS)

test-cluster: setup cluster-build ## the tests on a real cluster that they start themselves: minutes
	$(BIN)/pytest tests/cluster

test-part: setup cluster-build ## one part of the tests on real clusters: PART=schedules, tenants, install, checks or runtime: minutes
	tests=$$(.ci/parts $(PART)) && $(BIN)/pytest --timeout=600 $$tests

cluster-build: setup ## build the cluster's programs: half an hour once, then cached
	$(BIN)/python -m testbed build

cluster-up: setup ## start a real cluster with Velero and an S3 server on this machine
	$(BIN)/python -m testbed up --velero

cluster-down: setup ## stop it and leave nothing behind
	$(BIN)/python -m testbed down

cron-oracle: setup ## compare the cron engine with both Go libraries on 200,000 random schedules: minutes
	$(BIN)/python -m bench.cron_oracle

etcd-restore: setup cluster-build ## restore etcd to an earlier state ROUNDS=20 times, with Velero and the operator in each order; the last line is JSON: two hours
	$(BIN)/python -m tests.cluster.etcd_restore $(or $(ROUNDS),20) $(or $(SEED),1)

deletion-worlds: setup ## judge each deletion of Backups in 10,000 random histories of months by a model of what is promised; the last line is JSON: hours; SIZE=0.03 for 300, FIRST=300 for others
	$(BIN)/python -m bench.deletion_worlds --size $(or $(SIZE),1) --first $(or $(FIRST),0)

retention-oracle: setup ## compare retention with the real restic 0.18.1, built by the testbed, on 500 random histories: minutes
	$(BIN)/python -m bench.retention_oracle

plan-oracle: setup ## compare restore plans with real restores in 200 random worlds: half an hour; SIZE=0.1 for a tenth, FIRST=20 for other seeds
	$(BIN)/python -m bench.plan_oracle --size $(or $(SIZE),1) --first $(or $(FIRST),0)

coverage-oracle: setup ## compare coverage with the archives of real Velero on 10,000 random specs: hours; SIZE=0.03 for 300; VELERO=1.17
	$(BIN)/python -m testbed build etcd kube s3 velero velero-aws $(if $(filter 1.17,$(VELERO)),velero-1.17)
	$(BIN)/python -m bench.coverage_oracle --size $(or $(SIZE),1) --first $(or $(FIRST),0) --velero $(or $(VELERO),1.18)

restore-checks: setup cluster-build ## check backups in sandboxes: planted faults, side effects, 200 namespaces, 200 kills; SIZE=0.1 for a tenth
	$(BIN)/python -m bench.restore_checks --size $(or $(SIZE),1)

bench-fleet: setup ## ask a real Prometheus about 1,000 simulated clusters with 200 namespaces each; the last line is JSON: minutes
	$(BIN)/python -m bench.fleet --size $(SIZE)

cron-fuzz: setup ## feed ten million random byte strings to the cron engine: minutes
	$(BIN)/python -m bench.cron_fuzz

bench-tenant-schedules: setup ## measure 10,000 NonAdminSchedules: silence, memory, 1,000 due at once; SIZE=0.1 for a tenth
	$(BIN)/python -m testbed build etcd kube s3 velero velero-aws helm
	$(BIN)/python -m bench.nonadmin_schedules --size $(SIZE)

bench-schedules: setup ## measure schedules beside Velero's controller and a bare loop; SIZE=0.1 for a tenth
	$(BIN)/python -m testbed build etcd kube s3 velero velero-aws helm
	$(BIN)/python -m bench.schedules --size $(SIZE)

bench-schedule-policies: setup ## measure 10,000 Schedules under 50 policies beside none: memory, lateness, an edit, silence; SIZE=0.1 for a tenth
	$(BIN)/python -m testbed build etcd kube s3 velero velero-aws helm
	$(BIN)/python -m bench.schedules.under_policies --size $(SIZE)

bench-selfservice: setup ## measure self-service beside a bare loop, and a hundred thousand backups; SIZE=0.1 for a tenth
	$(BIN)/python -m testbed build etcd kube s3 velero velero-aws helm
	$(BIN)/python -m bench.selfservice --size $(SIZE)

schedule-year: setup ## live through a simulated year of 1,000 schedules beside the Go libraries: minutes
	$(BIN)/python -m bench.schedule_year
	$(BIN)/python -m bench.schedule_year --policies

tenant-schedule-year: setup ## live through a simulated year of 1,000 NonAdminSchedules beside the Go libraries: two hours of CPU
	$(BIN)/python -m bench.schedule_year --tenants

bench-primers: setup cluster-build ## measure start delays cold and warm, and ten thousand primed CronJobs: 45 minutes
	$(BIN)/python -m bench.primers --size $(SIZE)

bench-scale: setup cluster-build ## measure how cost grows with the number of objects: 1, 3 and 10 times as many: 10 minutes
	$(BIN)/python -m bench.scale

bench-console: setup cluster-build ## the console with 5,000 rows and with 50 viewers at once, SIZE=1; the last line is JSON: minutes
	$(BIN)/python -m bench.console --size $(SIZE)

bench-hand: setup cluster-build ## the commands that people type often beside kubectl, ROUNDS=20 times; the last line is JSON: a minute
	$(BIN)/python -m bench.hand --rounds $(ROUNDS)

moment-worlds: setup ## live through HISTORIES=10000 random histories of restores; the last line is JSON: ten minutes of CPU
	$(BIN)/python -m bench.moment_worlds --histories $(HISTORIES)

primer-year: setup ## live through a simulated year of CRONJOBS=100 primed CronJobs in 20 zones: 90 minutes of CPU for 1,000
	$(BIN)/python -m bench.primer_year --cron-jobs $(CRONJOBS)

bench-cron: setup ## measure the cron engine beside croniter and cronsim
	$(BIN)/python -m bench.cron_speed

runtime-kills: setup cluster-build ## kill the example controller KILLS=200 times on a real cluster: minutes
	$(BIN)/python -m bench.runtime_kills $(KILLS)

bench-runtime: setup cluster-build ## measure the runtime on real clusters: half an hour; SIZE=0.1 for a tenth of it: minutes
	$(BIN)/python -m bench.runtime --size $(SIZE)

schedule-gitops: setup cluster-build ## a GitOps tool puts its manifest back for ten minutes, and no slot is lost
	FORESAIL_FULL=1 $(BIN)/pytest tests/cluster/test_schedules_gitops.py

schedule-kills: setup cluster-build ## kill the operator 200 times, and no slot runs twice: 20 minutes
	FORESAIL_FULL=1 $(BIN)/pytest tests/cluster/test_schedules_kills.py

retention-kills: setup cluster-build ## kill the operator KILLS=200 times while retention deletes: the newest good backups exist; the last line is JSON
	$(BIN)/python -m bench.retention_kills --kills $(KILLS)

protection-kills: setup cluster-build ## kill the operators 200 times amid 500 changes of labels, classes and namespaces: nobody without a Schedule; SIZE=0.1 for a tenth; the last line is JSON
	$(BIN)/python -m bench.protection_kills --size $(SIZE)

schedule-clusters: setup cluster-build ## two clusters on one bucket, 20 common slots, 40 backups: minutes
	FORESAIL_FULL=1 $(BIN)/pytest tests/cluster/test_schedules_velero.py -k two_clusters

matrix: setup ## schedules, self-service and install with Kubernetes 1.34 to 1.37, Velero 1.17 and 1.18; the last line is JSON: two hours
	$(BIN)/python -m tests.matrix

selfservice-specs: setup ## try 60,000 random specs and 10,000 random restores against the invariant: minutes
	FORESAIL_EXAMPLES=10000 $(BIN)/pytest tests/unit/selfservice/specs/test_any_spec.py tests/unit/selfservice/access/test_any_restore.py

tenant-schedule-kills: setup cluster-build ## kill the operator KILLS=200 times while NonAdminSchedules are due: none twice, none lost
	FORESAIL_KILLS=$(KILLS) $(BIN)/pytest -s tests/cluster/test_tenant_schedules.py -k killed

selfservice-kills: setup cluster-build ## kill the operator 200 times amid tenants' requests: no backup twice, none nobody's
	FORESAIL_FULL=1 $(BIN)/pytest tests/cluster/test_selfservice_kills.py

restore-authorization: setup cluster-build ## 1,000 restores with random kinds and rights against a model, 60 on a real cluster
	$(BIN)/pytest tests/worlds/test_selfservice_access.py
	FORESAIL_RESTORES=60 $(BIN)/pytest tests/cluster/test_selfservice_authorization.py

truth: setup cluster-build ## ask every answer about 80 states of a real cluster as administrator and as a team; the last line is JSON: 15 minutes
	$(BIN)/python -m bench.truth

hostile-load: setup cluster-build ## ten minutes of each attack on memory and time beside a normal tenant; SIZE=0.1 for a minute each; the last line is JSON
	$(BIN)/python -m bench.hostile_load --size $(SIZE)

bench-admission: setup cluster-build ## what one hostile write costs the API server, with 1 and 100 SelfServicePolicies and without; the last line is JSON
	$(BIN)/python -m bench.admission

api-server-starts: setup cluster-build ## start the API server STARTS=30 times under a flood of forbidden objects; the last line is JSON
	$(BIN)/python -m tests.redteam.api_server_starts --starts $(or $(STARTS),30)

redteam: setup cluster-build ## attack self-service on real clusters as a hostile tenant; the last line is JSON: half an hour
	$(BIN)/python -m tests.redteam

stolen-token: setup cluster-build ## try every write of each of our tokens on a real cluster; the last line is JSON: minutes
	$(BIN)/python -m tests.stolen_token

primer-kills: setup cluster-build ## kill the operator 100 times while warm-ups are due: no placeholder twice, none orphaned
	FORESAIL_FULL=1 $(BIN)/pytest tests/cluster/test_primers_kills.py

primer-kept: setup cluster-build ## five fires of primers in every situation, losses and standing reservations: half an hour
	FORESAIL_FULL=1 $(BIN)/pytest tests/cluster/test_primers.py

primer-admission: setup cluster-build ## 2,000 random pods and their placeholders against a real API server; the last line is JSON
	$(BIN)/python -m bench.primer_admission

selfservice-queue: setup cluster-build ## 20 backups of 5 tenants in a real Velero's queue: minutes
	FORESAIL_FULL=1 $(BIN)/pytest tests/cluster/test_selfservice_queue.py

chart-upgrade: setup cluster-build ## upgrade the kinds and roll back among 1,000 NonAdminBackups, and lose none
	FORESAIL_FULL=1 $(BIN)/pytest tests/cluster/test_upgrade.py

soak: setup cluster-build ## all three capabilities for an hour while the API server, Velero, S3 and the leader are killed
	$(BIN)/python -m bench.soak --size $(SIZE) --minutes $(MINUTES)

disaster: setup cluster-build ## lose a cluster with 10,000 backups of 100 tenants and adopt all from the bucket; SIZE=0.1 for a tenth
	$(BIN)/python -m bench.disaster --size $(SIZE)

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

ci: ## everything that CI runs, as CI runs it
	.ci/run
