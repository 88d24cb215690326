# What a contributor needs, by name. The checks themselves are in .ci/check.
.DEFAULT_GOAL := help
.PHONY: help test live fmt lint docs proof features deny deploy fuzz controlplane owners bench bench-cluster bench-gate oracle clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

test: ## everything that CI checks, cheap checks first, what is built from Go last
	@.ci/check format lint docs proof deny tests features fuzz deploy controlplane live

live: ## what needs Go: the Helm chart, and gangline run beside a real control plane (a quarter of an hour at first)
	@.ci/check deploy controlplane live

fmt: ## format the source
	@.ci/format

lint: ## clippy, warnings are errors
	@.ci/check lint

docs: ## documentation of the crates, warnings are errors; see target/doc/gangline/index.html
	@.ci/check docs

proof: ## the no-alloc tier of the core links without std and without a heap
	@.ci/check proof

features: ## the core with each combination of features
	@.ci/check features

deny: ## licences, bans and sources of what we depend on
	@.ci/check deny

deploy: ## render the Helm chart to the plain manifests
	@.ci/deploy

fuzz: ## fuzz every target for FUZZ_SECONDS (60) each
	@.ci/fuzz

controlplane: ## build the Kubernetes programs that tests run (minutes at first); prints where
	@.ci/controlplane

owners: ## JobSets and LeaderWorkerSets by their own controllers, built first (a quarter of an hour at first); not in CI
	@.ci/check owners

bench: ## micro-benchmarks and bytes per object; see docs/performance.md
	cargo bench --locked --package gangline-benches

bench-cluster: ## binding beside a real control plane: floor, kube-scheduler, Gangline (a quarter of an hour; on a quiet machine)
	cargo bench --locked --package gangline-k8s --features live-tests --bench cluster

bench-gate: ## instruction counts against their limits; needs valgrind and gungraun-runner
	@command -v valgrind >/dev/null || { echo "valgrind is missing; get it with: apt-get install valgrind"; exit 1; }
	@command -v gungraun-runner >/dev/null || { echo "gungraun-runner is missing; get it with: cargo install --locked gungraun-runner --version 0.20.0"; exit 1; }
	cargo bench --locked --package gangline-benches --features gate --bench instructions

oracle: ## compare the search with the exhaustive one on 10^6 random worlds
	GANGLINE_ORACLE_WORLDS=1000000 cargo test --locked --release --package gangline --features serde --test oracle

clean: ## remove what was built
	cargo clean
	cargo clean --manifest-path fuzz/Cargo.toml
