#!/usr/bin/env bash
# Builds the release binary and its benchmark helpers, then runs the benchmarks of the core beside their floors and peers. Those of data,
# checkpoints, records, detectors, evaluations, starts and the registry have separate folders; bench/evaluate/run.sh runs the post-flight ones.
set -euo pipefail
cd "$(dirname "$0")/.."
# One command, so that every dependency is built once, with one set of features. Without optimization at link time, which takes minutes for each
# of the helpers and changes the figures by a few percent.
cargo build --locked --profile quick -p trackway -p trackway-ledger -p trackway-sql -p trackway-records -p trackway-rules -p trackway-recorder \
  --bin trackway --example fill_ledger --example fill_runs --example scan_throughput --example log_latency \
  --example close_record
exec python3 bench/bench.py --target "${CARGO_TARGET_DIR:-target}/quick" "$@"
