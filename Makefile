# Everything a contributor needs, by name. The work itself is in .ci/check.
.DEFAULT_GOAL := help
.PHONY: help test fmt lint docs

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

test: ## everything CI checks
	@.ci/check format lint tests docs

fmt: ## format the source
	cargo fmt --all -- --config imports_granularity=Crate,group_imports=StdExternalCrate

lint: ## clippy, warnings are errors
	@.ci/check lint

docs: ## the documentation of the crates, warnings are errors
	@.ci/check docs
