#!/usr/bin/env bash
# The suites whose bounds are kept small in CI, with larger ones: 500 kills of real jobs, many more seeds, a larger model.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
export TRACKWAY_KILLS=${TRACKWAY_KILLS:-500} TRACKWAY_SEEDS=${TRACKWAY_SEEDS:-20000} TRACKWAY_MODEL_BOUND=${TRACKWAY_MODEL_BOUND:-1}

echo "== $TRACKWAY_KILLS kills of real jobs"
"$cargo" test --locked --workspace --test resume -- --nocapture random_kills
"$cargo" test --locked -p trackway-checkpoint -- --nocapture a_killed_rank
TRACKWAY_TEST_KILLS=$(((TRACKWAY_KILLS + 1) / 2)) make test-python FRAMEWORKS=1

echo "== $TRACKWAY_SEEDS seeds, model bound $TRACKWAY_MODEL_BOUND"
"$cargo" test --locked -p trackway-store -p trackway-checkpoint --features trackway-store/testing -- --nocapture seed model simulation
