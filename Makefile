# `make` alone lists what there is. `make demo` needs Go; `make test` needs Go
# and gcc; the rest builds the tools it needs from their own modules.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VERSION ?= $(or $(patsubst v%,%,$(shell git describe --tags --always --dirty 2>/dev/null)),unknown)
REVISION ?= $(or $(shell git rev-parse HEAD 2>/dev/null),unknown)
IMAGE ?= ghcr.io/dra-exporter/dra-exporter
# A folder for the digests of images that are pushed.
PUSH ?=
# The architectures of make gpu-kit.
ARCH ?= $(shell go env GOARCH)
BENCH ?= .
BENCH_COUNT ?= 6
BENCH_BASE ?=
# A clone of github.com/NVIDIA/dcgm-exporter, and flags of go build for it.
DCGM_EXPORTER_SOURCES ?=
DCGM_EXPORTER_FLAGS ?=
FUZZTIME ?= 20s
SOAK ?= 30m
FUZZMINIMIZE ?= 20x
TEST_FLAGS ?=
DEMO_FLAGS ?=
# Another database than the public one, such as a mirror.
GOVULNDB ?=
VULN_FLAGS = $(if $(GOVULNDB),-db=$(GOVULNDB))

# Vendor libraries are opened at run time: their symbols must not be looked
# for when the program starts, which is what some linkers do by default.
LAZY := -extldflags=-Wl,-z,lazy
LDFLAGS := -s -w \
	-X github.com/prometheus/common/version.Version=$(VERSION) \
	-X github.com/prometheus/common/version.Revision=$(REVISION)

# The version is linked in above. Go's own stamping fails in a checkout that
# belongs to another user, which is common in containers.
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)

# The moment of the commit, and not of the build: the same commit gives the same
# image and the same archives.
CREATED ?= $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null)
IMAGE_ARGS = --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) --build-arg CREATED=$(CREATED)

TOOLS := $(CURDIR)/test/.bin/tools
RELEASE := $(CURDIR)/test/.bin/release
HELM := $(CURDIR)/test/.bin/helm/helm
PROMTOOL := $(CURDIR)/test/.bin/prometheus/promtool
HUGO := $(CURDIR)/test/.bin/hugo/hugo
SITE_PORT ?= 1313
KUSTOMIZATIONS := $(wildcard deploy/kustomize/base deploy/kustomize/overlays/*) dashboards
# The modules whose code is ours; those that only pin a tool have none, and the
# collector of test/programs/otelcol has next to none, at the price of checking all of it.
LINTED := . $(patsubst %/go.mod,%,$(wildcard dashboards/gen/go.mod site/go.mod test/programs/drivers/toolkit/go.mod test/suites/go.mod test/suites/prometheus/go.mod test/tools/lint/go.mod))

##@ Use
.PHONY: help demo
help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: ## a simulated node on this machine: no GPU, no cluster, no gcc (DEMO_FLAGS=…)
	@echo "Building dra-exporter with Go; the first time, this takes a minute or two."
	@$(MAKE) --silent --no-print-directory build-static
	@echo "Starting two simulated nodes and their cluster on this machine."
	@exec bin/dra-exporter-static demo $(DEMO_FLAGS)

##@ Build
.PHONY: build build-static image images release gpu-kit sbom
build: ## bin/dra-exporter, with NVML (cgo)
	CGO_ENABLED=1 go build -trimpath -ldflags '$(LDFLAGS) $(LAZY)' -o bin/dra-exporter ./cmd/dra-exporter

build-static: ## bin/dra-exporter-static, without vendor libraries
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/dra-exporter-static ./cmd/dra-exporter

image: ## the container images, for this architecture (docker with BuildKit)
	docker build $(IMAGE_ARGS) -t $(IMAGE):v$(VERSION) .
	docker build $(IMAGE_ARGS) -t $(IMAGE):v$(VERSION)-static --target static .

images: ## both images for both architectures; PUSH=folder pushes them to IMAGE
	VERSION=$(VERSION) REVISION=$(REVISION) CREATED=$(CREATED) .ci/images $(if $(PUSH),$(IMAGE) $(PUSH))

release: $(RELEASE)/.built $(HELM) ## dist/release: archives, chart, SBOMs, checksums (VERSION=1.2.3; PLATFORMS=…)
	VERSION=$(VERSION) REVISION=$(REVISION) .ci/release dist/release

gpu-kit: ## dist/gpu-kit-linux-amd64.tar.gz: the agent with its tests on real GPUs, for a machine with a driver alone (ARCH="amd64 arm64")
	@for arch in $(ARCH); do \
		VERSION=$(VERSION) REVISION=$(REVISION) .ci/gpu-kit $$arch dist/gpu-kit-linux-$$arch.tar.gz; \
	done

sbom: build $(RELEASE)/.built ## dist/dra-exporter.cdx.json: what bin/dra-exporter is made of (CycloneDX)
	@mkdir -p dist
	$(RELEASE)/cyclonedx-gomod bin -json -std -version v$(VERSION) -output dist/dra-exporter.cdx.json bin/dra-exporter

##@ Test
.PHONY: test test-packages test-gpukit test-short soak fuzz bench bench-peers e2e e2e-matrix e2e-versions boards-pictures pictures engines rehearsal
# The packages whose tests take longest come first, so that none of them is left
# alone at the end.
LONGEST := ./test/fakes/hostile ./cmd/dra-exporter ./internal/otlp
# Reducers start no goroutines, and the race detector makes their random histories
# five times as slow: with it a few of them run, without it all.
REDUCERS := ./collector/node ./collector/cluster
GO_TEST = CGO_ENABLED=1 go test -parallel 8 -timeout 45m -ldflags '$(LAZY)' $(TEST_FLAGS)
test: test-packages test-gpukit ## vet, the tests with the race detector, and the build without cgo

test-packages: ## the same without the tests of the GPU kit
	go vet ./...
	$(GO_TEST) -race $(LONGEST) $$(go list ./... | grep -vxF "$$(go list $(REDUCERS))")
	$(GO_TEST) -race -short $(REDUCERS)
	$(GO_TEST) $(REDUCERS)
	CGO_ENABLED=0 go build ./...
	CGO_ENABLED=0 go vet ./...
	cd dashboards/gen && go vet ./... && CGO_ENABLED=1 go test -race $(TEST_FLAGS) ./...
	cd test/tools/lint/house && go vet ./... && go test -count=1 $(TEST_FLAGS) ./...
	cd test/tools/lint/house && go run . -check >/dev/null

# They compare what is sampled at the same time in several ways: on a machine that
# does much else there are too few samples.
test-gpukit: ## the tests of the GPU kit
	cd test/suites/gpukit && go vet ./... && CGO_ENABLED=1 go test -race $(TEST_FLAGS) ./...

test-short: ## the quick tests, without the race detector
	go test -short -ldflags '$(LAZY)' $(TEST_FLAGS) ./...

soak: ## 20,000 random histories, an hour of garbage from libraries, and pages of 10 million rows against their oracles; both roles amid faults for SOAK (30m)
	DRA_EXPORTER_EXPOSITION=10000000 go test -count=1 -timeout 0 -run '^TestExposition$$' ./collector/metric
	DRA_EXPORTER_HISTORIES=20000 go test -count=1 -timeout 0 -run '^TestTruth' ./collector/node
	DRA_EXPORTER_GARBAGE=3600 go test -count=1 -timeout 0 -ldflags '$(LAZY)' -run '^TestGarbage' ./collector/device/...
	DRA_EXPORTER_SOAK=$(SOAK) go test -v -count=1 -timeout 0 -run '^TestSoak$$' ./test/fakes/hostile

# Inputs that find new code are made smaller FUZZMINIMIZE times, and not for a minute
# as by default: within FUZZTIME nothing else would be done.
fuzz: ## each fuzz target for FUZZTIME (20s)
	FUZZTIME=$(FUZZTIME) FUZZMINIMIZE=$(FUZZMINIMIZE) .ci/fuzz -ldflags '$(LAZY)'

bench: $(TOOLS)/.built ## benchmarks to dist/bench.txt (BENCH=…; BENCH_BASE=old.txt compares)
	@mkdir -p dist
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCH_COUNT) ./... | tee dist/bench.txt
	$(TOOLS)/benchstat $(BENCH_BASE) dist/bench.txt

# Its sources are not ours to ship. Its program reads a DCGM host engine of the stubs.
bench-peers: build ## scrapes of dcgm-exporter and of dra-exporter in turn (DCGM_EXPORTER_SOURCES=folder)
	@test -f "$(DCGM_EXPORTER_SOURCES)/cmd/dcgm-exporter/main.go" || \
		{ echo "DCGM_EXPORTER_SOURCES=$(DCGM_EXPORTER_SOURCES): name a folder with the sources of github.com/NVIDIA/dcgm-exporter" >&2; exit 1; }
	@mkdir -p dist
	cd $(DCGM_EXPORTER_SOURCES) && go build $(DCGM_EXPORTER_FLAGS) -o $(CURDIR)/dist/dcgm-exporter ./cmd/dcgm-exporter
	DCGM_EXPORTER=$(CURDIR)/dist/dcgm-exporter DCGM_EXPORTER_FIELDS=$(abspath $(DCGM_EXPORTER_SOURCES))/etc/default-counters.csv \
		DRA_EXPORTER_BINARY=$(CURDIR)/bin/dra-exporter \
		go test -run '^$$' -bench '^BenchmarkPeers$$' -benchtime 1x -ldflags '$(LAZY)' ./cmd/dra-exporter

e2e: ## the agent on a real Kubernetes node, built from Go modules (root, Linux)
	$(MAKE) -C test e2e

e2e-matrix: ## the same on all supported releases of Kubernetes; writes docs/compatibility.md
	$(MAKE) -C test e2e-matrix

e2e-versions: ## rules, notifications and pushes with the oldest and the newest Prometheus, Alertmanager and OpenTelemetry Collector (Debian)
	$(MAKE) -C test e2e-versions

boards-pictures: ## dist/boards: every dashboard over the demo, drawn with Grafana's libraries, and what it measures (npm, chromium; SCENARIO=live)
	$(MAKE) -C test boards-pictures

pictures: ## docs/images: the pages and top of the demo (npm, chromium)
	$(MAKE) -C test pictures

engines: ## rules, alerts and dashboards over one day on Prometheus, Thanos and VictoriaMetrics (Debian; ENGINES_FLAGS=-update)
	$(MAKE) -C test engines

rehearsal: ## a whole release without GitHub: published to a registry on this machine, verified, installed on a real node (root, Linux; VERSION=1.2.3)
	$(MAKE) -C test rehearsal

##@ Check
.PHONY: lint house vuln manifests rules dashboards exported prometheusrule chart-files chart tools docs
house: ## the shape of the code and the grammar of its names; fails beyond the limits (HOUSE=-v names them)
	cd test/tools/lint/house && go run . -check $(HOUSE)

lint: $(TOOLS)/.built $(RELEASE)/.built ## golangci-lint with our rules; staticcheck on the build without cgo; actionlint
	@for module in $(LINTED); do \
		echo "== golangci-lint $$module"; \
		(cd $$module && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...); \
	done
	CGO_ENABLED=0 $(TOOLS)/staticcheck ./...
	$(RELEASE)/actionlint

vuln: $(RELEASE)/.built ## govulncheck on the program, with and without cgo; its database is on the network (GOVULNDB=…)
	CGO_ENABLED=1 $(RELEASE)/govulncheck $(VULN_FLAGS) ./cmd/...
	CGO_ENABLED=0 $(RELEASE)/govulncheck $(VULN_FLAGS) ./cmd/...

manifests: ## render every kustomization (kubectl)
	@for folder in $(KUSTOMIZATIONS); do \
		kubectl kustomize $$folder >/dev/null; echo "$$folder renders"; \
	done

rules: $(PROMTOOL) ## check and test rules, alerts, runbooks and dashboards as Prometheus reads them
	$(PROMTOOL) check rules alerts/*.yaml
	$(PROMTOOL) test rules alerts/tests/*.yaml
	cd test/suites/prometheus && go vet ./... && go test -count=1 ./...

dashboards: ## write dashboards/*/*.json from dashboards/gen
	cd dashboards/gen && go run . -out ..

exported: ## dashboards and rules for servers without honorLabels, to dist/exported
	cd dashboards/gen && go run . -exported ../../alerts -out $(CURDIR)/dist/exported

prometheusrule: ## write the PrometheusRule of deploy/kustomize from alerts/*.yaml
	cd test/suites/prometheus && go test -run '^TestPrometheusRule$$' . -update

# Git has dashboards and rules once, and a chart has them in its folder.
chart-files: ## write what the Helm chart copies (dashboards, rules), before `helm install` from a clone
	cd dashboards/gen/chart && go run .

chart: chart-files $(HELM) ## the same, and the thresholds of the chart's values and its README.md
	cd test/suites/helm && go test -run '^TestThresholds$$' . -update
	cd test/suites/helm && go test -run '^TestValuesDocument$$' . -update

docs: ## write internal/series/counts.json, collector/metric/asked.txt, docs/metrics.md, docs/configuration.md and the tables of docs/faq.md, docs/health.md, docs/sources.md, docs/opentelemetry.md
	cd test/suites/prometheus && go test . -run '^Test(AskedFamilies|Series)$$' -update
	go test ./collector/node -run '^TestHealthDocument$$' -update
	go test -p 1 ./internal/otlp ./internal/otlp/naming -run 'Document$$' -update
	go test -ldflags '$(LAZY)' ./cmd/dra-exporter -run '^Test((Metrics|Sources|Configuration|Series)Document|LevelPages)$$' -update
	cd test/suites/e2e && go test ./releases -run '^TestDocument$$' -update

.PHONY: site site-build site-test
site: $(HUGO) ## serve the documentation site on this machine, and show changes at once (SITE_PORT=1313)
	@echo "http://127.0.0.1:$(SITE_PORT)/"
	@exec $(HUGO) server --source . --config site/hugo.yaml --bind 127.0.0.1 --port $(SITE_PORT) --baseURL http://127.0.0.1:$(SITE_PORT)/ --noBuildLock --renderToMemory --quiet

site-build: $(HUGO) ## dist/site: the documentation site, which needs no server (REF=main, v1.2.3)
	HUGO=$(HUGO) .ci/site build

site-test: $(HUGO) ## build the documentation site and check links, headings, images, navigation, search and versions
	cd site && go vet ./... && HUGO=$(HUGO) go test -count=1 $(TEST_FLAGS) ./...

tools: $(TOOLS)/.built $(RELEASE)/.built $(PROMTOOL) ## build the linters, benchstat, govulncheck and the like, promtool and Prometheus

build_tools = cd $(<D) && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $(@D)/

$(TOOLS)/.built: test/tools/lint/go.mod test/tools/lint/go.sum
	@mkdir -p $(@D)
	$(build_tools) github.com/golangci/golangci-lint/v2/cmd/golangci-lint golang.org/x/perf/cmd/benchstat honnef.co/go/tools/cmd/staticcheck
	@touch $@

$(RELEASE)/.built: test/tools/release/go.mod test/tools/release/go.sum
	@mkdir -p $(@D)
	$(build_tools) github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod github.com/rhysd/actionlint/cmd/actionlint golang.org/x/vuln/cmd/govulncheck \
		sigs.k8s.io/krew/cmd/krew sigs.k8s.io/krew/cmd/validate-krew-manifest
	@touch $@

$(HELM): test/suites/go.mod test/suites/go.sum
	$(MAKE) -C test $(@D)/.built

# Of all the ways in which Prometheus finds targets, the shipped configurations
# use one: the others are the libraries of every cloud.
$(PROMTOOL): test/suites/prometheus/go.mod test/suites/prometheus/go.sum
	@mkdir -p $(@D)
	$(build_tools) -tags remove_all_sd,enable_kubernetes_sd tool

$(HUGO): site/go.mod site/go.sum
	@mkdir -p $(@D)
	cd $(<D) && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $(@D)/ tool
	@touch $@

##@ Clean
.PHONY: clean
clean: ## remove what was built here; `make -C test clean` removes the tools
	rm -rf bin dist
