# Two commands matter: `make demo` and `make test`.
CARGO ?= cargo
PYTHON ?= python3
VENV := .venv
PYTHON_VENV := .venv-python
# `make test-python FRAMEWORKS=main` installs PyTorch, Transformers, scikit-learn and XGBoost too, FRAMEWORKS=1 all frameworks; it fails where one is missing.
FRAMEWORKS ?=
# The profile of the binary in the wheel (`dev`: built in a fraction of the time, for tests); WHEEL_BINARY names one that is built already.
WHEEL_PROFILE ?= release
WHEEL_BINARY ?=
# Where `make install` puts the binary.
PREFIX ?= $(HOME)/.local
# The example jobs are a separate workspace, built into the same target folder.
EXAMPLES = --locked --manifest-path examples/rust/Cargo.toml --target-dir $${CARGO_TARGET_DIR:-target}

.PHONY: demo test test-services test-s3 test-python test-frameworks test-layouts test-readers test-adopted storm smell mutants soak soak-chaos kill-steps build install agent module wheel wheel-manylinux wheel-musl test-start test-start-musl picture venv examples lint lint-quick clippy lint-more features fuzz-check doc doc-api bench clean help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 16

demo: ## build what it needs, train on real data, kill it, resume it, explain it
	@scripts/readme/demo.sh

test: venv ## everything that needs no system service
	@scripts/count_skips.sh test scripts/test.sh

examples: ## the example jobs, beside the debug binary
	$(CARGO) build $(EXAMPLES)

# Their tests wait most of the time.
test-services test-s3: export RUST_TEST_THREADS := $(shell echo $$(($$(nproc) * 2)))

test-services: ## what needs PostgreSQL (a throw-away cluster is started)
	TRACKWAY_TEST_POSTGRES=1 scripts/count_skips.sh services $(CARGO) test --locked --workspace --test ledger --test sql --test it -- postgres

test-s3: $(VENV)/moto examples ## what needs an S3 server over a socket (moto's is started; another runs in process)
	TRACKWAY_TEST_EXAMPLES=1 TRACKWAY_TEST_MOTO=$(CURDIR)/$(VENV)/bin/moto_server scripts/count_skips.sh s3 $(CARGO) test --locked --workspace --test s3 --test it -- moto remote::

test-python: module ## the tests of the Python package (FRAMEWORKS=main: with the main frameworks), and its lints
	$(PYTHON_VENV)/bin/ruff check --no-cache crates/edges/python/python crates/edges/python/tests
	$(PYTHON_VENV)/bin/python scripts/check_types.py
	PATH="$$(realpath $${CARGO_TARGET_DIR:-target})/debug:$$PATH" TRACKWAY_TEST_FRAMEWORKS=$(FRAMEWORKS) TRACKWAY_TEST_KILLS=$${TRACKWAY_TEST_KILLS:-25} scripts/count_skips.sh python $(PYTHON_VENV)/bin/python -m pytest -q crates/edges/python/tests
	$(if $(FRAMEWORKS),PATH="$(abspath $(PYTHON_VENV))/bin:$$PATH" TRACKWAY_TEST_FRAMEWORKS=$(FRAMEWORKS) scripts/count_skips.sh frameworks $(CARGO) test --locked --workspace --test it -- prove::the_torch diagnose::the_torch probe::the_torch rehearsals::the_ example_evaluators:: saved_models::)

test-frameworks: ## the tests of the Python package with all frameworks, JAX and Lightning among them
	$(MAKE) test-python FRAMEWORKS=1

test-layouts: $(PYTHON_VENV)/ready1 ## checkpoints that the installed frameworks write, and whether they are recognised
	rm -rf $(PYTHON_VENV)/layout-samples
	$(PYTHON_VENV)/bin/python crates/storage/layouts/samples/make.py $(PYTHON_VENV)/layout-samples >/dev/null
	TRACKWAY_LAYOUT_SAMPLES=$(CURDIR)/$(PYTHON_VENV)/layout-samples $(CARGO) test --locked --workspace --test samples

test-readers: $(PYTHON_VENV)/duckdb ## generated tables of hard values, read as DuckDB and pandas read them or with a note (TRACKWAY_READERS_SEED=1)
	$(CARGO) build --locked --bin trackway
	$(PYTHON_VENV)/bin/python crates/science/tables/samples/compare_readers.py $${CARGO_TARGET_DIR:-target}/debug/trackway $${TRACKWAY_READERS_SEED:-1}

test-adopted: $(PYTHON_VENV)/catboost ## trainings of installed frameworks that are killed at random under `trackway run`
	$(CARGO) build --locked --bin trackway
	$(PYTHON_VENV)/bin/python crates/run/adopt/samples/kills.py $${CARGO_TARGET_DIR:-target}/debug/trackway $${TRACKWAY_TEST_KILLS:-25}

storm: $(PYTHON_VENV)/ready1 ## trainings in one folder that are killed and resumed at random: nobody's file is touched (TRACKWAY_STORM_SEED=1)
	$(CARGO) build --locked --bin trackway
	$(PYTHON_VENV)/bin/python crates/run/adopt/samples/storm.py $${CARGO_TARGET_DIR:-target}/debug/trackway $${TRACKWAY_STORM_SEED:-1}

smell: $(PYTHON_VENV)/ready1 ## failed runs with a known truth: what `explain` answers about each (SMELL="--kinds trainer --only nan --show")
	cargo build --locked --package trackway
	$(PYTHON_VENV)/bin/python crates/edges/cli/tests/smell/smell.py --program $${CARGO_TARGET_DIR:-target}/debug/trackway $${SMELL:---kinds all}

module: $(PYTHON_VENV)/ready$(FRAMEWORKS) ## the Python module alone, built and installed into .venv-python
	rm -rf $(PYTHON_VENV)/wheels
	$(PYTHON_VENV)/bin/maturin build --locked --profile quick --quiet -m crates/edges/python/Cargo.toml -o $(PYTHON_VENV)/wheels
	$(PYTHON_VENV)/bin/twine check --strict $(PYTHON_VENV)/wheels/*.whl
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(PYTHON_VENV)/wheels/*.whl

wheel: $(PYTHON_VENV)/ready ## the wheel for users into dist/: the command `trackway` and the module `trackway` (WHEEL_PROFILE=dev: without optimization)
	MATURIN=$(PYTHON_VENV)/bin/maturin WHEEL_PROFILE=$(WHEEL_PROFILE) WHEEL_BINARY=$(WHEEL_BINARY) scripts/package/wheel.sh
	$(PYTHON_VENV)/bin/twine check --strict dist/trackway-*.whl

wheel-manylinux: $(PYTHON_VENV)/zig ## the same for systems with glibc 2.28 or newer, such as RHEL 8, linked by zig
	PATH="$(CURDIR)/$(PYTHON_VENV)/bin:$$PATH" MATURIN=maturin WHEEL_TARGET=x86_64-unknown-linux-gnu WHEEL_GLIBC=2.28 WHEEL_PROFILE=$(WHEEL_PROFILE) WHEEL_BINARY=$(WHEEL_BINARY) scripts/package/wheel.sh

wheel-musl: $(PYTHON_VENV)/zig ## the wheel for systems with musl, such as Alpine, into dist-musl/ (needs: rustup target add x86_64-unknown-linux-musl)
	PATH="$(CURDIR)/$(PYTHON_VENV)/bin:$$PATH" MATURIN=maturin WHEEL_TARGET=x86_64-unknown-linux-musl DIST=dist-musl WHEEL_PROFILE=$(WHEEL_PROFILE) WHEEL_BINARY=$(WHEEL_BINARY) scripts/package/wheel.sh

test-start-musl: wheel-musl ## the session of README.md with that wheel, in a Python that is built against musl (needs musl-tools, deb-src)
	scripts/package/musl_python.sh $(PYTHON_VENV)/musl
	$(PYTHON_VENV)/musl/bin/python3 scripts/readme/check_start.py README.md dist-musl

test-start: wheel ## the wheel in an empty environment without Rust: the session of README.md, its output compared
	$(PYTHON) scripts/readme/check_start.py README.md dist

picture: ## the picture of README.md, from its session with the debug binary (needs Chromium: apt-get install chromium fonts-inter)
	$(CARGO) build --locked --bin trackway
	$(PYTHON) scripts/readme/picture.py README.md $${CARGO_TARGET_DIR:-target}/debug/trackway docs/explain.webp

install: build ## the release binary into $(PREFIX)/bin
	install -D -m 755 $${CARGO_TARGET_DIR:-target}/release/trackway $(DESTDIR)$(PREFIX)/bin/trackway

build: ## the release binary
	CARGO=$(CARGO) scripts/package/release.sh

agent: ## the static agent (the shim alone) into dist/, its size checked, a script run under it
	scripts/package/agent.sh

venv: $(VENV)/ready ## the Python environment of the tests

$(VENV)/ready: examples/python/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r examples/python/requirements.txt
	@touch $@

$(PYTHON_VENV)/ready: crates/edges/python/requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "the Python package needs Python 3.11 or newer: make PYTHON=... ")'
	$(PYTHON) -m venv $(PYTHON_VENV)
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check -r crates/edges/python/requirements.txt
	@touch $@

$(PYTHON_VENV)/readymain: $(PYTHON_VENV)/ready crates/edges/python/requirements-main.txt
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check -r crates/edges/python/requirements-main.txt
	@touch $@

$(PYTHON_VENV)/ready1: $(PYTHON_VENV)/readymain crates/edges/python/requirements-frameworks.txt
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check -r crates/edges/python/requirements-frameworks.txt
	@touch $@

$(PYTHON_VENV)/duckdb: $(PYTHON_VENV)/ready1
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check duckdb==2.0.1
	@touch $@

$(PYTHON_VENV)/catboost: $(PYTHON_VENV)/ready1
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check catboost==1.2.10
	@touch $@

$(PYTHON_VENV)/zig: $(PYTHON_VENV)/ready
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check ziglang==0.17.1 cargo-zigbuild==0.24.1
	@touch $@

$(VENV)/moto: $(VENV)/ready
	$(VENV)/bin/pip install --quiet --disable-pip-version-check 'moto[server]>=5.2,<6'
	@touch $@

mutants: ## 100,000 damaged files of each format of tables, printed logs, event files, records, plans, lock files and other tools' stores: no panic (MUTANTS=1000 for fewer)
	TRACKWAY_FUZZ_MUTANTS=$${MUTANTS:-100000} $(CARGO) test --locked --profile quick -p trackway-tables -p trackway-formats -p trackway-ledger -p trackway-records -p trackway-sql -p trackway-engine --lib -- mutants --nocapture

soak: ## larger bounds: 500 kills, many seeds, larger models (SOAK_MINUTES=60; the next call continues)
	scripts/soak.sh

soak-chaos: ## 50 jobs with random kills of supervisor, shim, script and PostgreSQL (TRACKWAY_CHAOS_SEED=14); outages of 2 minutes, cuts and failovers in 100 writes
	TRACKWAY_TEST_POSTGRES=1 TRACKWAY_CHAOS_JOBS=$${TRACKWAY_CHAOS_JOBS:-50} TRACKWAY_TEST_OUTAGE_SECONDS=120 \
	TRACKWAY_TEST_WRITE_CUTS=$${TRACKWAY_TEST_WRITE_CUTS:-100} $(CARGO) test --locked --workspace --test it -- --nocapture --test-threads 1 \
	postgres_chaos postgres_restarts postgres_is_cut postgres_fails_over

kill-steps: ## deployments, exports and rebuilds, killed at every step, and 200 promotions at once (Linux)
	TRACKWAY_KILL_EVERY=1 TRACKWAY_RACERS=200 $(CARGO) test --locked --workspace --test it -- --nocapture kill_steps:: deletion::current

lint: lint-quick clippy ## format, clippy, walls, words, cycles

clippy: ## what the compiler's lints see, warnings are errors
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

lint-quick: ## what lint sees without a compiler: seconds, so before every commit
	$(CARGO) fmt --all -- --check
	$(CARGO) fmt --manifest-path examples/rust/Cargo.toml -- --check
	$(PYTHON) scripts/check_walls.py
	$(PYTHON) scripts/check_sizes.py
	$(PYTHON) scripts/check_words.py
	$(PYTHON) scripts/check_cycles.py
	$(PYTHON) scripts/check_versions.py
	$(PYTHON) scripts/check_links.py
	@git grep -nE '/[r]oot/[[:alnum:].]'; test $$? -eq 1 || { echo 'paths that look like those of a machine'; exit 1; }
	$(PYTHON) scripts/check_comments.py
	$(PYTHON) scripts/check_errors.py

lint-more: doc features fuzz-check $(PYTHON_VENV)/ready1 ## what takes longer: documentation, builds without features, examples, fuzz targets, types of Python
	$(CARGO) clippy $(EXAMPLES) --all-targets -- -D warnings
	$(PYTHON_VENV)/bin/mypy --config-file crates/edges/python/pyproject.toml --cache-dir $(PYTHON_VENV)/mypy crates/edges/python/python/trackway

features: ## the binary without any of its features (EACH=1: also with each alone)
	scripts/features.sh $(EACH)

fuzz-check: ## that the fuzz targets compile (fuzz/README.md says how to run them)
	$(CARGO) check --locked --manifest-path fuzz/Cargo.toml --target-dir $${CARGO_TARGET_DIR:-target}/fuzz

# With an example, cargo gives the dependencies the features that clippy and the tests have: after `make clippy` nothing is compiled for it.
doc-api: ## API documentation of the product, warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --lib --bins --example resolve

doc: doc-api ## API documentation, of the example jobs too
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(EXAMPLES) --no-deps

bench: ## benchmarks, with the peers in the same run
	bench/run.sh

clean:
	$(CARGO) clean
	rm -rf $(VENV) $(PYTHON_VENV) dist
