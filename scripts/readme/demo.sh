#!/usr/bin/env bash
# The main job on real data: a wine classifier is killed in the middle, resumes, completes, is evaluated on held-out rows, and explained.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; else bold='' plain=''; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

say "Building (profile dev)"
# With a test named, dependencies have the features that `make test` gives them, which then compiles none of them again.
"${CARGO:-cargo}" build --locked --workspace --bin trackway --test skipped
"${CARGO:-cargo}" build --locked --manifest-path examples/rust/Cargo.toml --target-dir "$target"
PATH="$(cd "$target" && pwd)/debug:$PATH"
export PATH

TRACKWAY_HOME=${TRACKWAY_HOME:-$(mktemp -d "${TMPDIR:-/tmp}/trackway-demo.XXXXXX")}
export TRACKWAY_HOME

run=(trackway run examples/wine.toml --inject kill@save=300)
say "${run[*]}"
"${run[@]}"

say "The save that was killed left an entry that nobody reads: it was being written, and its writer is fenced"
trackway checkpoint ls last
trackway checkpoint doctor last

say "trackway explain last"
trackway explain last

say "Its last checkpoint was judged on the rows that were held out: numbers with intervals, gates, and a page"
trackway eval show last --html "$TRACKWAY_HOME/evaluation.html"

say "The gates, judged again: the same evidence is the same receipt"
trackway gates judge last

say "trackway attempts"
trackway attempts

query="select attempt_number, termination_reason, resumed_from_step, last_committed_step, exit_code, signal from training_attempts order by attempt_number"
say "trackway sql \"$query\""
trackway sql "$query"

[ "$(trackway attempts --json | grep -c '"termination_reason": "completed"')" = 1 ]
[ "$(trackway gates judge last --json | grep -c '"verdict": "pass"')" -ge 1 ]
say "Done: everything is in $TRACKWAY_HOME, the page of the evaluation in $TRACKWAY_HOME/evaluation.html"
