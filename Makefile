# Two commands matter: `make demo` and `make test`.
CARGO ?= cargo
PYTHON ?= python3
VENV := .venv

.PHONY: demo test test-services build venv lint doc bench clean help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 16

demo: ## build a quick profile, train on real data, kill it, resume it, explain it
	@scripts/demo.sh

test: venv ## everything that needs no system service
	@scripts/test.sh

test-services: ## what needs PostgreSQL (a throw-away cluster is started)
	TRACKWAY_TEST_POSTGRES=1 $(CARGO) test --locked --workspace --test ledger --test it -- postgres

build: ## the release binary
	$(CARGO) build --locked --release -p trackway

venv: $(VENV)/ready ## the Python environment of the tests

$(VENV)/ready: examples/python/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r examples/python/requirements.txt
	@touch $@

lint: ## format, clippy, walls
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(PYTHON) scripts/check_walls.py

doc: ## API documentation, warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps

bench: ## benchmarks, with the peers in the same run
	bench/run.sh

clean:
	$(CARGO) clean
	rm -rf $(VENV)
