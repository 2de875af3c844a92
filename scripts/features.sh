#!/usr/bin/env bash
# Checks the binary without any of its features; with an argument, also with each of them alone.
set -euo pipefail
cd "$(dirname "$0")/.."
check() { echo "features: ${*:-none}"; "${CARGO:-cargo}" clippy --locked -q -p trackway --no-default-features "${@/#/--features=}" -- -D warnings; }
check
[ -n "${1:-}" ] || exit 0
features=$(sed -n 's/^default = \[\(.*\)\]$/\1/p' crates/edges/cli/Cargo.toml | tr -d '",')
[ -n "$features" ] || { echo "crates/edges/cli/Cargo.toml lists no default features" >&2; exit 1; }
for feature in $features; do check "$feature"; done
