#!/usr/bin/env bash
# Builds the release binary and its benchmark helpers, then runs every benchmark beside its floor and its peers.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --locked --release -p trackway
cargo build --locked --release -p trackway-ledger --example fill_ledger
cargo build --locked --release -p trackway-tower --example scan_throughput
cargo build --locked --release -p trackway-recorder --example log_latency
exec python3 bench/bench.py --target "${CARGO_TARGET_DIR:-target}/release" "$@"
