# make run         build quickly and play the offline tour (docs/demo.md); MODEL=PROVIDER/NAME plays it on a
#                  real model, with its key; MODEL=local asks a small local model a question on each wire
# make install     build an optimized binary and install it into PREFIX/bin (~/.local/bin)
# make dist        build a static binary, and packages of it in DIST (dist): archive, deb, wheel, npm
# make test        everything CI runs: test-core, then test-peers
# make test-core   format, lints, tests, doctests, docs; nothing but Rust is needed
# make test-peers  tests against real peers: MCP servers, a local model, OpenAI's client, Schemathesis, package managers, shells;
#                  make deny
# make check       format and lints
# make crash       kill the binary N times wherever it writes, and check that nothing is lost (N=2000 by default)
# make outages     every state of a task meets every outage, with outages of S seconds (S=60 by default)
# make takeovers   kill the process that owns a project's journal N times, beside others that work (N=200 by default)
# make screens     write the screens of the terminal program anew, which the tests compare (docs/terminal.md)
# make bench       benchmarks, each beside a baseline
# make fuzz        search for inputs that break the parsers (needs a nightly toolchain), T seconds each
# make deny        check licenses, sources, banned crates, and advisories where their database is installed
#
# Each installs what it needs. Compiled code stays outside of the clone, in ANTIPHON_CACHE, so that another clone
# builds quickly too.

ANTIPHON_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/antiphon
export ANTIPHON_CACHE
export CARGO_TARGET_DIR ?= $(ANTIPHON_CACHE)/target
export PATH := $(ANTIPHON_CACHE)/bin:$(PATH)

CARGO := cargo
# `make run ANTIPHON=…` plays the tour with an existing binary.
TOUR := $(CARGO_TARGET_DIR)/tour/antiphon
ANTIPHON ?= $(TOUR)
RELEASE := $(CARGO_TARGET_DIR)/release/antiphon
PREFIX ?= $(HOME)/.local
T ?= 60
N ?= 2000
S ?= 60
# Where a static binary comes from: musl needs no library of the system.
MACHINE := $(shell uname -m)
STATIC := $(MACHINE)-unknown-linux-musl
STATIC_BINARY := $(CARGO_TARGET_DIR)/$(STATIC)/dist/antiphon
DIST ?= dist
# What the tests install packages with, and what shows their completions and pages.
PACKAGE_TOOLS := python3-venv npm dpkg strip unshare zsh fish man groff mandoc
takeovers: N = 200

.PHONY: run install dist test test-core test-peers check screens crash outages takeovers bench fuzz deny setup
.DEFAULT_GOAL := test

run: $(if $(filter $(TOUR),$(ANTIPHON)),setup)
ifeq ($(ANTIPHON),$(TOUR))
	@scripts/step "Building (a few minutes the first time)" $(CARGO) build --profile tour --package antiphon --no-default-features --locked
endif
ifeq ($(MODEL),local)
	@echo "The small local model chats, poorly, and cannot use tools: it is asked a question in place of the demo."
	@scripts/need python3 python3-venv
	@for provider in local local-anthropic local-responses; do \
		scripts/step "Asking a small real model on the wire of $$provider" scripts/local-model \
			$(ANTIPHON) run --max-tokens 60 --model $$provider/smollm2 "Who are you?" || exit $$?; \
	done
else
	@scripts/step "A team at work, on $(or $(MODEL),a script)" $(ANTIPHON) demo $(if $(MODEL),--model $(MODEL))
endif

check: setup
	@scripts/step "Format" $(CARGO) fmt --all --check
	@scripts/step "Lints" $(CARGO) clippy --workspace --all-targets --locked -- -D warnings

screens: setup
	@UPDATE=1 scripts/step "Writing the screens of the terminal program" $(CARGO) nextest run --workspace --locked --test terminal -E 'binary_id(antiphon::terminal)'

install: setup
	@scripts/step "Building with optimization" $(CARGO) build --release --package antiphon --locked
	@install -D -m 755 $(RELEASE) $(PREFIX)/bin/antiphon
	@echo "Installed $(PREFIX)/bin/antiphon"

dist: setup
	@scripts/need musl-gcc python3 cargo-nextest $(PACKAGE_TOOLS)
	@scripts/step "The standard library for $(STATIC)" rustup target add $(STATIC)
	@scripts/step "Building a static binary" $(CARGO) build --profile dist --target $(STATIC) --package antiphon --locked
	@scripts/step "Packages" python3 -B scripts/packaging $(STATIC_BINARY) $(DIST)
	@ANTIPHON_PACKAGED=$(STATIC_BINARY) scripts/step "Installing each in an empty root" \
		$(CARGO) nextest run --package antiphon --locked --profile peers --test packages

test: test-core test-peers

test-core: check
	@scripts/need cargo-nextest
	@scripts/step "Tests" $(CARGO) nextest run --workspace --locked --profile core
	@scripts/step "Doctests" $(CARGO) test --workspace --doc --locked --quiet
	@RUSTDOCFLAGS="-D warnings" scripts/step "Docs" \
		$(CARGO) doc --workspace --no-deps --document-private-items --locked --quiet

test-peers: setup
	@scripts/need cargo-nextest python3 $(PACKAGE_TOOLS)
	@scripts/step "MCP servers" scripts/mcp-servers
	@scripts/step "A client of editors' protocol" scripts/acp-clients
	@scripts/step "MCP clients" scripts/mcp-clients
	@scripts/step "A small model" scripts/local-model true
	@scripts/step "OpenAI's client" python3 crates/interfaces/openai_api/tests/chat/openai_sdk.py --install
	@scripts/step "SDKs of A2A" scripts/a2a-sdks
	@scripts/step "SDKs of OpenAI, Anthropic and Vercel" scripts/model-sdks
	@scripts/step "Codex CLI and Claude Code" scripts/foreign-clients
	@scripts/step "Schemathesis" python3 crates/interfaces/http/tests/server/fuzz.py --install
	@scripts/step "Tests against real peers" $(CARGO) nextest run --workspace --locked --profile peers
	@$(MAKE) --no-print-directory deny

crash: setup
	@scripts/step "Building" $(CARGO) test --package antiphon --test crash --no-run --locked
	@CRASH_KILLS=$(N) scripts/step "Killing it $(N) times" \
		$(CARGO) test --package antiphon --test crash --locked -- --nocapture

# Without nextest, which ends a test after a minute.
outages: setup
	@scripts/step "Building" $(CARGO) test --package antiphon --test outage_table --no-run --locked
	@OUTAGE_S=$(S) scripts/step "Outages of $(S) seconds" \
		$(CARGO) test --package antiphon --test outage_table --locked -- --test-threads 8

takeovers: setup
	@scripts/step "Building" $(CARGO) test --package antiphon --test processes --no-run --locked
	@ANTIPHON_KILLS=$(N) scripts/step "Killing the owner $(N) times" $(CARGO) test --package antiphon --test processes \
		--locked -- --nocapture --exact take_over::an_owner_that_is_killed_under_load_is_not_missed

bench: setup
	@scripts/need rg
	@scripts/step "Building" $(CARGO) build --release --package antiphon --locked
	@ANTIPHON=$(RELEASE) scripts/step "Benchmarks" $(CARGO) bench --package antiphon-bench --locked

fuzz: setup
	@scripts/need cargo-fuzz
	@for target in parse stream; do \
		mkdir -p $(ANTIPHON_CACHE)/found/$$target; \
		CARGO_TARGET_DIR=$(ANTIPHON_CACHE)/fuzz scripts/step "Fuzzing $$target for $(T) s" \
			$(CARGO) +nightly fuzz run $$target $(ANTIPHON_CACHE)/found/$$target fuzz/corpus/$$target \
			-- -max_total_time=$(T) -rss_limit_mb=4096 || exit 1; \
	done

# The advisory database is a git repository: it is checked where `cargo deny fetch` has been able to clone it.
ADVISORIES := $(if $(wildcard $(or $(CARGO_HOME),$(HOME)/.cargo)/advisory-dbs/*),advisories)

deny: setup
	@scripts/need cargo-deny
	@scripts/step "Dependencies: bans, licenses, sources $(ADVISORIES)" \
		$(CARGO) deny --all-features --locked check --hide-inclusion-graph --allow duplicate bans licenses sources $(ADVISORIES)

setup:
	@scripts/need cargo cc
