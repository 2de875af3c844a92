#!/usr/bin/env bash
# The suites whose bounds are small in CI, with larger ones: kills of real jobs, seeds, models, every bit and every place.
# Runs for at most SOAK_MINUTES (60) in small batches, each part in turn, and ends with a report. What a batch found is kept,
# and the next call continues with the next batch; SOAK_FRESH=1 starts over.
# SOAK_PARTS names some of the parts below instead of all of them.
# SOAK_PYTHON names an interpreter that has the package and PyTorch; without it the package is built.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
state=${CARGO_TARGET_DIR:-target}/soak
end=$((SECONDS + ${SOAK_MINUTES:-60} * 60))
export RUST_BACKTRACE=0

# Each part: a name, how many batches, and a function that does batch number $1.
parts=(
  "rust_kills 10" "torch_kills 10" "record_kills 10" "script_kills 10" "rank_kills 1" "store_seeds 10" "disk_seeds 10" "node_seeds 20" "every_place 1"
  "disk_models_more_saves 1" "disk_models_more_faults 1" "remote_models_more_saves 1" "remote_models_more_faults 1"
)

wanted() { [ -z "${SOAK_PARTS:-}" ] || [[ " $SOAK_PARTS " == *" $1 "* ]]; }
check() { "$cargo" test --locked -q "$@"; }
range() { echo "TRACKWAY_SEEDS=$((($1 - 1) * $2))..$(($1 * $2))"; }
# Half of TRACKWAY_KILLS are made there.
rust_kills() { TRACKWAY_KILLS=50 TRACKWAY_SEED=$1 check --manifest-path examples/rust/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}" --test resume -- --nocapture random_kills; }
torch_kills() {
  TRACKWAY_TEST_KILLS=25 TRACKWAY_TEST_SEED=$1 "$python" -m pytest -q -s crates/edges/python/tests/state/test_torch.py -k kills_at_random
}
# What was logged before a kill is in the record.
record_kills() { TRACKWAY_KILLS=50 TRACKWAY_SEED=$1 check -p trackway-recorder --test processes -- --nocapture sigkill_loses; }
script_kills() {
  TRACKWAY_TEST_KILLS=50 TRACKWAY_TEST_SEED=$1 "$python" -m pytest -q -s crates/edges/python/tests/run/test_run.py -k killed_script
}
rank_kills() { TRACKWAY_KILLS=250 check -p trackway-checkpoint --lib -- --nocapture a_killed_rank; }
store_seeds() { env "$(range "$1" 1000)" "$cargo" test --locked -q -p trackway-store --features testing --lib -- --nocapture bad_weather; }
disk_seeds() { env "$(range "$1" 2000)" "$cargo" test --locked -q -p trackway-checkpoint --lib -- --nocapture no_seed_breaks; }
node_seeds() { env "$(range "$1" 500)" "$cargo" test --locked -q -p trackway-checkpoint --lib -- --nocapture no_seed_makes; }
every_place() {
  TRACKWAY_SEEDS=100 check -p trackway-checkpoint --lib -- --nocapture any_flipped_bit a_kill_and_then_a_power_cut clocks_may_jump
}
models() { TRACKWAY_MODEL_BOUND=$2 check -p trackway-checkpoint --test protocol -- --nocapture --skip every_rule "$1::"; }
disk_models_more_saves() { models disk saves; }
disk_models_more_faults() { models disk faults; }
remote_models_more_saves() { models remote saves; }
remote_models_more_faults() { models remote faults; }

run_batch() { # PART NUMBER: its output becomes PART.NUMBER when all held, else PART.NUMBER.failed
  local out="$state/$1.$2"
  [ -e "$out" ] && return
  rm -f "$out.failed"
  echo "== $1, batch $2"
  if "$1" "$2" >"$out.new" 2>&1; then mv "$out.new" "$out"; else mv "$out.new" "$out.failed"; tail -n 20 "$out.failed"; fi
  grep -hE '^[0-9]+ (kills (over|of)|seeds)|^model ' "$out"* || true
}

[ -z "${SOAK_FRESH:-}" ] || rm -rf "$state"
mkdir -p "$state"
rm -f "$state"/*.new
python=${SOAK_PYTHON:-}
if [ -z "$python" ] && { wanted torch_kills || wanted script_kills; }; then
  make module FRAMEWORKS=1
  python=${PYTHON_VENV:-.venv-python}/bin/python
fi

for batch in $(seq 20); do
  for part in "${parts[@]}"; do
    read -r name batches <<<"$part"
    [ "$SECONDS" -lt "$end" ] || break 2
    if [ "$batch" -le "$batches" ] && wanted "$name"; then run_batch "$name" "$batch"; fi
  done
done

echo
echo "== report"
for part in "${parts[@]}"; do
  read -r name batches <<<"$part"
  done_files=$(find "$state" -name "$name.*" ! -name '*.failed' ! -name '*.new' | sort -V)
  failed=$(find "$state" -name "$name.*.failed" | wc -l)
  # shellcheck disable=SC2086
  figures=$([ -z "$done_files" ] || awk '
    /^[0-9]+ (kills (over|of)|seeds)/ { sum += $1; what = $2; sub(":", "", what) }
    /^model / { for (i = 2; i <= NF; i++) if ($i ~ /^states/) { sum += $(i - 1); what = "states" } }
    END { if (what) print sum, what }' $done_files)
  printf '%-26s %2d of %2d batches  %d failed  %s\n' "$name" "$(wc -w <<<"$done_files")" "$batches" "$failed" "$figures"
done
! ls "$state"/*.failed >/dev/null 2>&1
