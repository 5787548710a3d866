# Change Relay: everything a developer or CI runs. `make` prints what there is.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

MODULES := pkg/contract services/sandbox services/publisher services/projector services/projector/example services/e2e
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w
BIN := $(CURDIR)/bin
GOLANGCI_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.9.0
FUZZTIME ?= 10s

# The race detector needs a C compiler; a machine with Go alone tests without.
RACE := $(shell if [ "$$(go env CGO_ENABLED)" = 1 ] && command -v "$$(go env CC)" >/dev/null; then echo -race; fi)

# Everything else is built in one way, without C, so that nothing is compiled twice.
export CGO_ENABLED := 0

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## run the whole path on the embedded sandbox, with faults, and check it (ARGS="--rate 2000 …")
	@go build -o $(BIN)/demo ./services/e2e/cmd/demo
	@exec $(BIN)/demo $(ARGS)

.PHONY: up
up: ## run sandbox, publisher and projector until Ctrl-C, for your own events (ARGS="--collection … --projections …", ARGS=-h)
	@go build -o $(BIN)/up ./services/e2e/cmd/up
	@exec $(BIN)/up $(ARGS)

.PHONY: test
test: $(BIN)/sandbox ## run every test that needs no Docker
	@[ -n "$(RACE)" ] || echo "no C compiler found: testing without the race detector"
	@scripts/tools-of-tests
	@CGO_ENABLED=$(if $(RACE),1,0) SANDBOX_BIN=$(BIN)/sandbox \
		go test $(RACE) -exec 'env CGO_ENABLED=0' -p 4 -shuffle=on -timeout 30m $(MODULES:%=./%/...)
	@[ -z "$(RACE)" ] || $(MAKE) --no-print-directory model

.PHONY: model
model: ## walk through every state of the protocol's model, and show that it needs each guard (ARGS=-v)
	@go test -shuffle=on ./services/e2e/internal/check/model $(ARGS)

.PHONY: images
images: ## build the container images, without pulling anything, and list what is in them
	@scripts/images $(VERSION)

.PHONY: test-compose
test-compose: images ## bring docker-compose.yml up with the sandbox, kill the leader, and check every event
	@scripts/compose-check $(VERSION)

.PHONY: test-docker
test-docker: images ## run the images as containers, kill, freeze and cut them off, and check every event
	@cd services/e2e && IMAGE_VERSION=$(VERSION) go test -tags docker -count=1 -v -timeout 20m ./container

.PHONY: chaos
chaos: ## inject every fault there is, and check that nothing is lost (SEED=1 DURATION=2m ARGS="--every 3s …")
	@go run ./services/e2e/cmd/chaos --seed $(or $(SEED),1) --duration $(or $(DURATION),2m) $(ARGS)

.PHONY: long
long: ## run campaigns of every kind for DURATION (60m), with settings drawn by seeds from SEED on (ARGS="--update docs/proofs.md")
	@go run ./services/e2e/cmd/long --seed $(or $(SEED),1) --duration $(or $(DURATION),60m) $(ARGS)

.PHONY: copy
copy: $(BIN)/sandbox ## copy N documents (200000) over a topic that takes 1,500 a second, with a kill and throttling
	@cd services/e2e && COPY_DOCUMENTS=$(or $(N),200000) SANDBOX_BIN=$(BIN)/sandbox go test -count=1 -v -timeout 60m -run TestCopy_ ./scenario

.PHONY: upgrades
upgrades: ## run the last release beside today's programs, in every order of rolling, forward and back
	@cd services/e2e && UPGRADES=1 go test -count=1 -v -timeout 15m -run TestUpgrade_ ./scenario | grep -E '^ *---|NOT RUN|_test.go|^ok|^FAIL'

.PHONY: accept
accept: ## try the relay on your own servers (TEST_MONGODB_URI=… TEST_SERVICEBUS_CONNECTION_STRING=…, or one), and write a report
	@go run ./services/e2e/cmd/accept $(ARGS)

.PHONY: liars
liars: ## try the judge of the demo and the campaigns on relays that lie (SEED=1 ARGS="--of 3", ARGS="--only 1970")
	@go run ./services/e2e/cmd/liars --seed $(or $(SEED),1) $(ARGS)

.PHONY: sdk-suite
sdk-suite: ## run the live tests of the Azure SDK for Go against the sandbox (ARGS="-run Session")
	@scripts/sdk-suite $(ARGS)

.PHONY: crashpoints
crashpoints: ## kill services at each named step, KILLS times each, and check that nothing is lost (ARGS="--only save …")
	@go run ./services/e2e/cmd/crashpoints --kills $(or $(KILLS),50) $(ARGS)

.PHONY: bench
bench: ## measure speed, latency, failover and growth (ARGS="--quick", ARGS="--world wan path", ARGS=-h)
	@go run ./services/e2e/cmd/bench $(ARGS)

.PHONY: plan
plan: ## what a load takes, with sources (ARGS="--rate 5000 --aggregates 1e6 --size 2KB --rtt 5ms", ARGS=-h)
	@go run ./services/e2e/cmd/plan $(ARGS)

.PHONY: build
build: $(BIN)/sandbox ## build the binaries into bin/
	@for service in publisher projector; do \
		go build -ldflags '$(LDFLAGS) -X main.version=$(VERSION)' -o $(BIN)/$$service ./services/$$service/cmd/$$service; \
	done

.PHONY: $(BIN)/sandbox
$(BIN)/sandbox:
	@go build -ldflags '$(LDFLAGS) -X main.version=$(VERSION)' -o $@ ./services/sandbox/cmd/sandbox

.PHONY: run-sandbox
run-sandbox: $(BIN)/sandbox ## run the sandbox on its standard ports
	@$(BIN)/sandbox $(ARGS)

.PHONY: run-publisher
run-publisher: build ## run a publisher with the settings in the environment
	@$(BIN)/publisher $(ARGS)

.PHONY: run-projector
run-projector: build ## run a projector with the settings in the environment
	@$(BIN)/projector $(ARGS)

.PHONY: mutate
mutate: $(BIN)/sandbox ## cut each guard of the services in turn, and show which test goes red (SEED=1 ARGS="--of 40", ARGS="--only save", ARGS="--whole FILE")
	@SANDBOX_BIN=$(BIN)/sandbox go run ./services/e2e/cmd/mutate --seed $(or $(SEED),1) $(ARGS)

.PHONY: check
check: lint alone test test-deployments ## the quick part of CI, before a commit

.PHONY: ci
ci: ## everything CI runs, and nothing else (SEED=1); lists what this machine cannot run
	@SEED=$(SEED) scripts/ci

.PHONY: nightly
nightly: ## what CI has no time for: every kind of campaign for DURATION (60m), fuzzing, with the day's seeds (SEED=…)
	@SEED=$(SEED) DURATION=$(DURATION) scripts/nightly

.PHONY: test-deployments
test-deployments: ## check manifests, dashboards, alerts and compose files
	@scripts/promtool
	@command -v terraform >/dev/null || echo "NOT RUN: whether deployments/azure is formatted: no terraform here, and Debian has no package of it"
	@echo "NOT RUN: whether Azure's provider accepts deployments/azure: terraform validate fetches the provider from HashiCorp's registry"
	@echo "NOT RUN: whether a cluster accepts deployments/kubernetes: no cluster is asked"
	@cd deployments && GOWORK=off go test -count=1 ./... # a result that is kept knows no files outside its module

.PHONY: alone
alone: ## build, vet and tidy-check each module by itself, without the workspace
	@for module in $(MODULES) deployments; do \
		echo "== $$module alone"; \
		(cd $$module && export GOWORK=off && go mod tidy -diff && go vet ./...); \
	done

.PHONY: lint
lint: tools ## lint every module, and check the documentation's links and names
	@for module in $(MODULES); do \
		echo "== lint $$module"; \
		(cd $$module && $(BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...); \
	done
	@cd deployments && GOWORK=off $(BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...
	@scripts/check-docs

.PHONY: fmt
fmt: tools ## format the code
	@for module in $(MODULES); do (cd $$module && $(BIN)/golangci-lint fmt --config $(CURDIR)/.golangci.yml ./...); done
	@cd deployments && GOWORK=off $(BIN)/golangci-lint fmt --config $(CURDIR)/.golangci.yml ./...

.PHONY: fuzz
fuzz: ## fuzz every decoder for FUZZTIME each
	@scripts/fuzz $(FUZZTIME)

.PHONY: hostile
hostile: $(BIN)/sandbox ## send the sandbox what no client should, for DURATION (20s), with bounds on memory (SEED=1)
	@cd services/sandbox && SANDBOX_BIN=$(BIN)/sandbox HOSTILE_FOR=$(or $(DURATION),20s) HOSTILE_SEED=$(SEED) \
		go test -count=1 -v -timeout 90m -run TestHostile_NoClientEndsTheSandbox ./cmd/sandbox

.PHONY: driver-suite
driver-suite: ## run the official Go driver's own tests against the sandbox (ARGS="-run unified/TestUnifiedSpec/crud …")
	@scripts/driver-suite $(ARGS)

.PHONY: vuln
vuln: ## look for known vulnerabilities, where the database can be reached
	@scripts/vuln $(GOVULNCHECK_VERSION) $(MODULES)

.PHONY: tools
tools: $(BIN)/golangci-lint-$(GOLANGCI_VERSION) ## install the linters into bin/

$(BIN)/golangci-lint-$(GOLANGCI_VERSION):
	GOWORK=off GOBIN=$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@touch $@

.PHONY: clean
clean: ## remove what was built and what demos left
	@rm -rf bin .run
