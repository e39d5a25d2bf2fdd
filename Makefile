# make run     build, and see Antiphon at work offline (docs/demo.md); MODEL=PROVIDER/NAME the same
#              on a real model, with a key; MODEL=local a question to a small model, on each wire
# make test    everything CI runs: format, lints, tests, doctests, docs
# make check   the quick half of it: format and lints
# make crash   kill it N times wherever it writes, and see that nothing is lost (N=2000 by default)
# make bench   benchmarks, each beside a baseline
# make fuzz    look for inputs that break the parsers (needs a nightly toolchain), T seconds each
# make deny    licences, sources and duplicate versions of what we depend on
#
# Each installs what it needs and is not there yet. Compiled code is kept outside of the
# clone, in ANTIPHON_CACHE, so that the next clone starts warm.

ANTIPHON_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/antiphon
export ANTIPHON_CACHE
export CARGO_TARGET_DIR ?= $(ANTIPHON_CACHE)/target
export PATH := $(ANTIPHON_CACHE)/bin:$(PATH)

CARGO := cargo
# A binary that is there is taken as it is: `make run ANTIPHON=…`.
HERE := $(CARGO_TARGET_DIR)/release/antiphon
ANTIPHON ?= $(HERE)
T ?= 60
N ?= 2000

.PHONY: run test check crash bench fuzz deny setup
.DEFAULT_GOAL := test

run: $(if $(filter $(HERE),$(ANTIPHON)),setup)
ifeq ($(ANTIPHON),$(HERE))
	@scripts/step "Building" $(CARGO) build --release --package antiphon --locked
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

test: check
	@scripts/need cargo-nextest python3 python3-venv npm
	@scripts/step "MCP servers" scripts/mcp-servers
	@scripts/step "A small model" scripts/local-model true
	@scripts/step "OpenAI's client" python3 crates/interfaces/openai_api/tests/chat/openai_sdk.py --install
	@scripts/step "Schemathesis" python3 crates/interfaces/http/tests/server/fuzz.py --install
	@scripts/step "Tests" $(CARGO) nextest run --workspace --locked --profile ci
	@scripts/step "Doctests" $(CARGO) test --workspace --doc --locked --quiet
	@RUSTDOCFLAGS="-D warnings" scripts/step "Docs" \
		$(CARGO) doc --workspace --no-deps --document-private-items --locked --quiet

crash: setup
	@scripts/step "Building" $(CARGO) test --package antiphon --test crash --no-run --locked
	@CRASH_KILLS=$(N) scripts/step "Killing it $(N) times" \
		$(CARGO) test --package antiphon --test crash --locked -- --nocapture

bench: setup
	@scripts/need rg
	@scripts/step "Building" $(CARGO) build --release --package antiphon --locked
	@ANTIPHON=$(ANTIPHON) scripts/step "Benchmarks" $(CARGO) bench --package antiphon-bench --locked

fuzz: setup
	@scripts/need cargo-fuzz
	@for target in parse stream; do \
		mkdir -p $(ANTIPHON_CACHE)/found/$$target; \
		CARGO_TARGET_DIR=$(ANTIPHON_CACHE)/fuzz scripts/step "Fuzzing $$target for $(T) s" \
			$(CARGO) +nightly fuzz run $$target $(ANTIPHON_CACHE)/found/$$target fuzz/corpus/$$target \
			-- -max_total_time=$(T) -rss_limit_mb=4096 || exit 1; \
	done

deny: setup
	@scripts/need cargo-deny
	@scripts/step "Dependencies" $(CARGO) deny check bans licenses sources

setup:
	@scripts/need cargo cc
