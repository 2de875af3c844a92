#!/usr/bin/env bash
# Everything that needs no system service. `make test` prepares the Python environment first.
set -euo pipefail
cd "$(dirname "$0")/.."
export TRACKWAY_TEST_PYTHON=${TRACKWAY_TEST_PYTHON:-$PWD/.venv/bin/python}
export TRACKWAY_TEST_EXAMPLES=1
# Real input for the tests that want it; without it they print that they were skipped.
if [ -z "${TRACKWAY_SHARED:-}" ] && [ -d ../shared ]; then TRACKWAY_SHARED=$(cd ../shared && pwd); export TRACKWAY_SHARED; fi
# Many tests wait: for processes, for files, for a disk.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(nproc) * 2))}
# The example jobs first: the tests of the binary run them.
"${CARGO:-cargo}" test --locked --manifest-path examples/rust/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}"
"${CARGO:-cargo}" test --locked --workspace
