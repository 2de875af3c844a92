#!/usr/bin/env bash
# Builds the static agent into DIST (default: dist/), checks its size, and runs a script under it.
# With the standard library of the musl target it needs nothing of the machine; without it glibc is linked statically.
set -euo pipefail
cd "$(dirname "$0")/../.."
target_folder=${CARGO_TARGET_DIR:-target}
bytes_max=8000000

has_target() { [ -n "$(find "$(rustc --print target-libdir --target "$1" 2>/dev/null)" -name 'libstd-*' 2>/dev/null)" ]; }
machine=$(uname -m)
if has_target "$machine-unknown-linux-musl"; then target=$machine-unknown-linux-musl libc=musl; else
  target=$machine-unknown-linux-gnu libc="glibc (for musl: rustup target add $machine-unknown-linux-musl)"
fi
# The hash function has assembly but no C, for which any C compiler does.
cc_variable=CC_${target//-/_}
# A variable of the target, so that what runs during the build stays dynamic.
variable=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_RUSTFLAGS
env "$cc_variable=${CC:-cc}" "$variable=-C target-feature=+crt-static" "${CARGO:-cargo}" build --locked --release -p trackway-agent --target "$target"

dist=${DIST:-dist}
mkdir -p "$dist"
agent=$(cd "$dist" && pwd)/trackway-agent
install -m 755 "$target_folder/$target/release/trackway-agent" "$agent"
bytes=$(stat -c %s "$agent")
echo "$agent: $bytes bytes, static, $libc"
[ "$bytes" -lt "$bytes_max" ] || { echo "the agent is larger than $bytes_max bytes" >&2; exit 1; }
TRACKWAY_TEST_AGENT=$agent "${CARGO:-cargo}" test --locked --workspace --test agent
