#!/usr/bin/env bash
# The post-flight figures in one go, each beside its peers: blind spots, metrics with fairness, rolling back. Needs Adult's training table.
# Usage: bench/evaluate/run.sh adult-train.csv [FOLDER=target/bench-evaluate]
set -euo pipefail
adult=$(realpath "$1")
cd "$(dirname "$0")/../.."
folder=${2:-target/bench-evaluate}
trackway=$(realpath -m "${CARGO_TARGET_DIR:-target}/release/trackway")
cargo build --locked --release -p trackway
bench/data/peers.sh "$folder/peers" slices metrics mlflow
"$folder/peers/slices/bin/python" bench/evaluate/slices.py "$folder/slices" --trackway "$trackway" --adult "$adult" --rounds 5
"$folder/peers/metrics/bin/python" bench/evaluate/metrics.py "$folder/metrics" --command "$trackway eval metrics --json"
make module
"$folder/peers/mlflow/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps .venv-python/wheels/*.whl
rm -rf "$folder/registry"
"$folder/peers/mlflow/bin/python" bench/registry/rollback.py "$folder/registry" --trackway "$trackway"
