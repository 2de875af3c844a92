#!/usr/bin/env bash
# Builds the release binary and its benchmark helpers, then runs every benchmark beside its floor and its peers.
set -euo pipefail
cd "$(dirname "$0")/.."
# One command, so that every dependency is built once, with one set of features.
cargo build --locked --release -p trackway -p trackway-ledger -p trackway-tower -p trackway-recorder \
  --bin trackway --example fill_ledger --example scan_throughput --example log_latency
exec python3 bench/bench.py --target "${CARGO_TARGET_DIR:-target}/release" "$@"
