#!/usr/bin/env bash
# Checks the binary without any of its features, and with those that are off by default; with an argument, also with each alone.
set -euo pipefail
cd "$(dirname "$0")/.."
check() { echo "features: ${*:-none}"; "${CARGO:-cargo}" clippy --locked -q -p trackway --no-default-features "${@/#/--features=}" -- -D warnings; }
manifest=crates/edges/cli/Cargo.toml
default=" $(sed -n 's/^default = \[\(.*\)\]$/\1/p' "$manifest" | tr -d '",') "
mapfile -t features < <(sed -n '/^\[features\]/,/^$/s/^\([a-z0-9-]*\) = .*/\1/p' "$manifest" | grep -vx default)
[ "$default" != "  " ] && [ "${#features[@]}" -gt 0 ] || { echo "$manifest lists no features" >&2; exit 1; }
off=()
for feature in "${features[@]}"; do [[ $default == *" $feature "* ]] || off+=("$feature"); done
check
check "${off[@]}"
[ -n "${1:-}" ] || exit 0
for feature in "${features[@]}"; do check "$feature"; done
