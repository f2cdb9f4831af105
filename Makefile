# Everything is installed into .venv/ and target/, nothing elsewhere.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

export PIP_CONSTRAINT := $(CURDIR)/python/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

ENGINE_SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find algorithms build \
	crates/agent-config crates/cc crates/link crates/policy crates/python crates/record crates/scenario crates/sim \
	-type f -not -path '*/tests/*' 2>/dev/null)
C_SOURCES := $(shell find algorithms crates -name '*.[ch]' -not -path '*/target/*')

DEMO := scenarios/papers/mfvl/setup3.toml

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV)/.engine ## compare MFVL with LIA in the smart-gas scenario, 20 seeds each
	$(BIN)/anabranch run $(DEMO) --seeds 20 --out runs/demo
	$(BIN)/anabranch run $(DEMO) --seeds 20 --out runs/demo --set connection.meter.congestion=lia
	$(BIN)/anabranch compare runs/demo --plots plots/demo

.PHONY: setup
setup: $(VENV)/.engine $(VENV)/.dev ## install the laboratory and the developers' tools into .venv/

.PHONY: bed
bed: ## build target/release/anabranch-bed, which runs scenarios on this machine's kernel
	@missing=$$(.ci/linux-packages) || { echo "packages are missing: sudo apt-get install $$missing" >&2; exit 1; }
	cargo build --release -p anabranch-bed

.PHONY: device
device: ## build target/release/anabranchd, which runs congestion controls in this machine's kernel, and their objects in target/bpf/
	@missing=$$(.ci/linux-packages) || { echo "packages are missing: sudo apt-get install $$missing" >&2; exit 1; }
	cargo build --release -p anabranch-device

.PHONY: agent-slim
agent-slim: ## build the agent alone, static and small: target/<this machine>/slim/anabranchd
	RUSTFLAGS="-C target-feature=+crt-static" cargo build --profile slim -p anabranch-device \
		--no-default-features --features agent --target $$(rustc -vV | sed -n 's/^host: //p')

.PHONY: agent-measure
agent-measure: bed ## measure the agent on the test bed; write tables into docs/agent.md; ten minutes of real time, as root
	cargo test -p anabranch-device --test agent_handover --test agent_gains -- --ignored --nocapture --test-threads=1

.PHONY: test
test: setup ## run every test this machine can run; the others are skipped by name
	.ci/test-linux
	cargo test
	$(BIN)/pytest

.PHONY: bench
bench: $(VENV)/.engine ## packet-hops per second and peak memory of scenarios/bench/; runs per second of a campaign
	cargo build --release --bin anabranch-bench
	$${CARGO_TARGET_DIR:-target}/release/anabranch-bench --ns2 benches/ns2 scenarios/bench/*.toml
	$(BIN)/anabranch bench

.PHONY: bench-transfer
bench-transfer: device ## speed of `anabranchd send` over the loopback interface against iperf3 under mptcpize, TLS, small files
	python3 benches/transfer.py --command $${CARGO_TARGET_DIR:-target}/release/anabranchd

.PHONY: agreement
agreement: bed $(VENV)/.engine ## run scenarios/agreement/ in the simulator and on the kernel; write docs/agreement.md and agreement-mptcp.md
	$(BIN)/anabranch agreement --write docs/agreement.md
	$(BIN)/anabranch agreement --scenarios scenarios/agreement/mptcp --no-files --seeds 3 --write docs/agreement-mptcp.md

.PHONY: coupling
coupling: bed $(VENV)/.engine ## run scenarios/coupling/ in the simulator and on the kernel; write docs/coupling.md
	$(BIN)/anabranch coupling --write docs/coupling.md

.PHONY: pages
pages: $(VENV)/.engine ## measure congestion controls, schedulers and path managers; write tables and plots into their pages
	$(BIN)/anabranch pages

.PHONY: papers
papers: $(VENV)/.engine ## reproduce every paper in full; write docs/papers.md; half an hour on two cores
	$(BIN)/anabranch reproduce all --write docs/papers.md

.PHONY: kernel-papers
kernel-papers: bed $(VENV)/.engine ## reproduce the papers on the kernel too; write docs/papers-kernel.md; an hour and a half of real time
	$(BIN)/anabranch reproduce all --engine kernel --out runs/reproduce-kernel --write docs/papers-kernel.md

.PHONY: transfer-figures
transfer-figures: bed device $(VENV)/.engine ## measure anabranchd send and receive on the kernel; write docs/transfer.md; half an hour
	$(BIN)/anabranch transfer-figures --write docs/transfer.md

.PHONY: lint
lint: setup ## check format and lints of Rust, C and Python
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	$(BIN)/clang-format --dry-run -Werror $(C_SOURCES)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

.PHONY: format
format: setup ## format Rust, C and Python
	cargo fmt
	$(BIN)/clang-format -i $(C_SOURCES)
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

.PHONY: clean
clean: ## remove what has been built; runs/ and plots/ stay
	rm -rf target $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis python/anabranch/_engine*.so

.PHONY: tools
tools:
	@missing() { echo "$$1 is missing: $$2" >&2; exit 1; }; \
	command -v cargo >/dev/null || missing "Rust (cargo)" "install it from https://rustup.rs"; \
	command -v cc >/dev/null || missing "a C compiler (cc)" "on Debian: apt-get install gcc libc6-dev"; \
	test -n "$(PYTHON)" || missing "Python 3.11 or newer" "on Debian: apt-get install python3 python3-venv"; \
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || missing "Python's venv" "on Debian: apt-get install python3-venv"

$(VENV)/.tools: python/constraints.txt | tools
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip maturin
	touch $@

$(VENV)/.engine: $(VENV)/.tools $(ENGINE_SOURCES)
	$(BIN)/maturin develop --release
	touch $@

$(VENV)/.dev: $(VENV)/.tools pyproject.toml
	$(BIN)/python -m pip install --quiet --group dev
	touch $@
