#!/usr/bin/env bash
# Runs a suite of tests, and prints at its end what it skipped and why. The skips are lines of target/skipped/SUITE.txt.
#   scripts/count_skips.sh SUITE COMMAND…
set -euo pipefail
suite=$1 folder=$(realpath -m "${CARGO_TARGET_DIR:-target}")/skipped status=0
mkdir -p "$folder"
export TRACKWAY_TEST_SKIPPED=$folder/$suite.txt
: >"$TRACKWAY_TEST_SKIPPED"
"${@:2}" || status=$?
python3 "$(dirname "$0")/skipped.py" "$TRACKWAY_TEST_SKIPPED"
exit "$status"
